"""The demo with its store in a lake: a PostgreSQL of its own, and a second hub that stands by."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import UsageError
from gpuwaste.testing import postgres_server
from gpuwaste.testing.running_site import SiteOptions

_USER: Final = "gpuwaste"


def check_lake(*, lake: bool, hubs: int) -> None:
    """Raise UsageError where the demo cannot be run so."""
    if hubs > 1 and not lake:
        raise UsageError("two hubs need a store in a lake: STORE=lake HUBS=2")
    if lake and (reason := postgres_server.missing()):
        raise UsageError(f"a lake needs PostgreSQL: {reason}")


@contextmanager
def with_lake(options: SiteOptions, directory: Path, *, lake: bool) -> Iterator[SiteOptions]:
    """Lend the options of a site whose store is in a lake below `directory`, where that is wanted."""
    if not lake:
        yield options
        return
    data = directory / "lake"
    data.mkdir(mode=0o700)
    shutil.chown(data, _USER, _USER)
    with postgres_server.postgres_server() as server:
        keys = {"store": "lake", "lake_catalog": server.new_database(), "lake_data": str(data)}
        yield replace(options, hub={**options.hub, **keys})

"""The catalogue: every kind of event by its name, and patterns of names."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.typed_toml import nearest
from gpuwaste.jobs.events import kinds
from gpuwaste.jobs.events.event_kind import EventKind

PREFIX: Final = "gpuwaste."  # of an event's type
_PATTERN: Final = re.compile(r"[a-z_]{1,32}(?:\.[a-z_]{1,32}|\.\*)|\*")


@cache
def catalogue() -> Mapping[str, EventKind]:
    """Return each kind by its name, in the order of families and of their files."""
    return {kind.name: kind for module in ModuleRegistry[Any](kinds, "KINDS").values() for kind in module.KINDS}


def kinds_of(patterns: Sequence[str], where: str, site: Collection[str] = ()) -> frozenset[str]:
    """Return the kinds that patterns name: job.started, job.*, *; all without a pattern. Raises ConfigError.

    `site` are the kinds that the site's inlets declare, beside those of the catalogue.
    """
    found: set[str] = set()
    names = {*catalogue(), *site}
    for pattern in patterns or ("*",):
        if not _PATTERN.fullmatch(pattern):
            raise ConfigError(f"{where}: {pattern!r:.80}: expected a kind, such as job.started, FAMILY.* or *")
        head = pattern.removesuffix("*")
        taken = {name for name in names if (name.startswith(head) if pattern.endswith("*") else name == head)}
        if not taken:
            known = names | {f"{name.partition('.')[0]}.*" for name in names}
            raise ConfigError(f"{where}: no kind of event is called {pattern!r}{nearest(pattern, known)}")
        found |= taken
    return frozenset(found)

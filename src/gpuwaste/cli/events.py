"""What `gpuwaste events` does: follow the hub's stream, read the catalogue, check files of outlets."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from gpuwaste.cli.hub_access import hub_client
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, UsageError
from gpuwaste.documents.event_types import CatalogueDocument, KindRow
from gpuwaste.events.catalogue import PREFIX, catalogue
from gpuwaste.events.outlet_files import OutletFile, load_outlet
from gpuwaste.report.cells import one_line

EXIT_BAD: Final = 2
_PAGE: Final = 1000
_LOOK_S: Final = 2.0


def listed(options: argparse.Namespace, config: Config) -> int:
    """Print events, each as a line; with --follow until interrupted. Raises as the hub's client does."""
    client = hub_client(config)
    after = options.after
    while True:
        asked: dict[str, str | int] = {"after": after, "limit": _PAGE, "kinds": options.kinds}
        answer: dict[str, Any] = client.get("/v1/events", asked)
        for event in answer["events"]:
            sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
        sys.stdout.flush()
        if answer["next"] == after:
            if not options.follow:
                return 0
            time.sleep(_LOOK_S)
        after = answer["next"]


def kinds() -> CatalogueDocument:
    """Return the catalogue of this version."""
    rows = [
        KindRow(kind=kind.name, type=PREFIX + kind.name, about=kind.about, schema=kind.schema())
        for kind in catalogue().values()
    ]
    return CatalogueDocument(kinds=rows)


def check(paths: Sequence[Path], config: Config) -> int:
    """Print what each outlet does, or every bad file's error; returns the exit code."""
    files = [file for path in paths or [Path(config.hub.outlets_dir)] for file in _files(path, given=bool(paths))]
    found: list[OutletFile] = []
    bad = False
    for file in files:
        try:
            outlet = load_outlet(file)
            outlet.make()
            found.append(outlet)
        except ConfigError as error:
            bad = True
            sys.stderr.write(f"gpuwaste: {one_line(str(error))}\n")
    for outlet in found:
        count = len(outlet.kinds)
        told = "all kinds" if count == len(catalogue()) else f"{count} of {len(catalogue())} kinds"
        sys.stdout.write(f"{outlet.name}: {outlet.way}, {told} of events, a new one begins {_begins(outlet)}\n")
    if not files:
        sys.stdout.write("no outlets: the hub sends no events\n")
    return EXIT_BAD if bad else 0


def _begins(outlet: OutletFile) -> str:
    return "now" if outlet.begin == "now" else "with the oldest event"


def _files(path: Path, *, given: bool) -> list[Path]:
    """Return a directory's outlets, or the file itself. Raises UsageError."""
    if path.is_dir():
        return sorted(file for file in path.glob("*.toml") if file.name[0] != ".")
    if not path.exists():
        if given:
            raise UsageError(f"{path}: no such file or directory: give the directory of the outlets")
        return []
    return [path]

"""What `gpuwaste events` does: follow the hub's stream, read the catalogue, check files of outlets."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from gpuwaste.cli.given_files import given_files
from gpuwaste.cli.hub_access import hub_client
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.events.catalogue import catalogue
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


def check(paths: Sequence[Path], config: Config) -> int:
    """Print what each outlet does, or every bad file's error; returns the exit code."""
    usual = Path(config.hub.outlets_dir)
    files = given_files(paths or [usual], "outlets") if paths or usual.exists() else []
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

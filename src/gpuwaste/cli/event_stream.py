"""What `gpuwaste events` does: follow the hub's stream, check files of outlets and inlets."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from gpuwaste.act.events.event_text import inlets_text, outlets_text, quarantine_text
from gpuwaste.act.events.event_types import InletsDocument, OutletsDocument
from gpuwaste.act.events.inlet import InletFile, is_inlet, load_inlet, load_inlets
from gpuwaste.act.events.outlet import OutletFile, load_outlet
from gpuwaste.cli.given_files import given_files
from gpuwaste.cli.hub_access import ask_hub, hub_client
from gpuwaste.cli.options import as_text, typed
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.jobs.events.kind_catalogue import catalogue
from gpuwaste.show.machine_formats import to_json
from gpuwaste.show.terminal_cells import one_line

EXIT_BAD: Final = 2
_PAGE: Final = 1000
_LOOK_S: Final = 2.0


def status(config: Config, *, as_json: bool) -> int:
    """Print outlets, inlets and quarantined events. Raises as the hub's client does."""
    outlets = typed(ask_hub(config, "/v1/outlets"), OutletsDocument, printed=not as_json)
    inlets = typed(ask_hub(config, "/v1/inlets"), InletsDocument, printed=not as_json)
    if as_json:
        sys.stdout.write(to_json({"outlets": outlets.to_json(), "inlets": inlets.to_json()}))
        return 0
    parts = as_text(outlets, outlets_text), as_text(inlets, inlets_text), as_text(inlets, quarantine_text)
    sys.stdout.write("\n".join(parts))
    return 0


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
    """Print what each outlet and inlet does, or every bad file's error; returns the exit code."""
    usual = [Path(config.hub.outlets_dir), Path(config.hub.inlets_dir)]
    files = given_files(paths or [path for path in usual if path.exists()], "outlets or inlets")
    declared = load_inlets(usual[1])[0]  # an outlet may name their kinds
    bad = False
    for file in sorted(files, key=lambda file: not is_inlet(file)):
        try:
            if is_inlet(file):
                inlet = load_inlet(file)
                inlet.make()
                declared.append(inlet)
                sys.stdout.write(_takes(inlet))
                continue
            outlet = load_outlet(file, {name for inlet in declared for name in inlet.own})
            outlet.make()
            sys.stdout.write(_gives(outlet))
        except ConfigError as error:
            bad = True
            sys.stderr.write(f"gpuwaste: {one_line(str(error))}\n")
    if not files:
        sys.stdout.write("no outlets and no inlets: the hub sends and accepts no events\n")
    return EXIT_BAD if bad else 0


def _takes(inlet: InletFile) -> str:
    return f"{inlet.name}: inlet, {inlet.way}, accepts {', '.join(inlet.kinds)}, {inlet.per_minute} a minute at most\n"


def _gives(outlet: OutletFile) -> str:
    count = len(outlet.kinds)
    told = "all kinds" if outlet.kinds >= catalogue().keys() else f"{count} of {len(catalogue())} kinds"
    begins = "now" if outlet.begin == "now" else "with the oldest event"
    return f"{outlet.name}: outlet, {outlet.way}, {told} of events, a new outlet begins {begins}\n"

"""Read the site's job history in bulk into the hub's store, or say what is there."""

import argparse
import json
import sys
from pathlib import Path

from gpuwaste.cli.options import add_config, config_of

HELP = "the job history: import or status"
EXAMPLES = (
    ("gpuwaste history import --sacct-live", "Read accounting, from where the last import stopped."),
    ("gpuwaste history status", "What is known, and what was kept aside."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    reader = actions.add_parser("import", help="read history; what was read before is not read again")
    whence = reader.add_mutually_exclusive_group(required=True)
    whence.add_argument("--sacct", type=Path, metavar="FILE", help="a file of sacct -P or --json (plain, xz, gz, bz2)")
    whence.add_argument("--sacct-live", action="store_true", help="accounting, through sacct")
    whence.add_argument("--slurmrestd", action="store_true", help="accounting, through slurmrestd")
    whence.add_argument("--swf", type=Path, metavar="FILE", help="a log in Standard Workload Format")
    whence.add_argument("--csv", type=Path, metavar="FILE", help="a CSV file, read as --mapping says")
    whence.add_argument("--again", action="store_true", help="parse the raw pages that were kept once more")
    reader.add_argument("--mapping", type=Path, metavar="TOML", help="with --csv: which column is what")
    reader.add_argument(
        "--format", default="", metavar="COLUMNS", help="with --sacct: its columns, where it has no header"
    )
    reader.add_argument("--delimiter", default="|", metavar="TEXT", help="with --sacct: what parts columns (default |)")
    reader.add_argument("--time-zone", default="", metavar="ZONE", help="of dates without one (default: this host's)")
    reader.add_argument("--cluster", default="", metavar="NAME", help="of the runs (default: the configuration's)")
    reader.add_argument("-S", "--starttime", metavar="TIME", help="as sacct (default: where the last import stopped)")
    reader.add_argument("-E", "--endtime", default="now", metavar="TIME", help="as sacct (default now)")
    reader.add_argument("--window-days", type=_count, default=1, metavar="N", help="accounting asked at a time (1)")
    reader.add_argument("--jobs", type=_count, default=2, metavar="N", help="processes that parse (2)")
    status = actions.add_parser("status", help="sources, marks, runs by month and state, rows kept aside")
    for action in (reader, status):
        action.add_argument("--into", type=Path, metavar="FILE", help="another store than the hub's own")
        action.add_argument("--json", action="store_true", help="one JSON document")
        add_config(action)


def run(options: argparse.Namespace) -> int:
    """Do the action on the store and print what came of it."""
    from gpuwaste.cli.history_import import bring, stand

    document, text = (stand if options.action == "status" else bring)(options, config_of(options))
    sys.stdout.write(json.dumps(document, indent=1) + "\n" if options.json else text)
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 366:  # noqa: PLR2004 days of a year
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 1 to 366")
    return int(text)

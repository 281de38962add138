"""Import the site's job history in bulk into the hub's store, or show what was imported."""

import argparse
import sys

from gpuwaste.cli.options import DETECTED, add, add_as_job, add_config, add_window, config_of
from gpuwaste.cli.words import number_word, path_word

HELP = "the job history: import, status"
EXAMPLES = (
    ("gpuwaste history import --sacct-live", "Import accounting, from where the last import stopped."),
    ("gpuwaste history status", "What was imported, and which rows were rejected."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    reader = actions.add_parser("import", help="import jobs; those that were imported before are skipped")
    source = reader.add_mutually_exclusive_group(required=True)
    add(source, "from", DETECTED, dest="from_file")
    add(source, "sacct")
    source.add_argument("--sacct-live", action="store_true", help="read jobs from accounting, through sacct")
    source.add_argument("--slurmrestd", action="store_true", help="read jobs from accounting, through slurmrestd")
    add(source, "swf")
    add(source, "csv-file")
    source.add_argument("--again", action="store_true", help="parse the raw pages of earlier imports again")
    add(reader, "mapping")
    reader.add_argument(
        "--format", default="", metavar="COLUMNS", help="with --sacct: columns of a file without a header"
    )
    add(reader, "delimiter", default="|")
    add(reader, "time-zone", default="", shown="this host's")
    add(reader, "clusters", default="", shown="common.cluster")
    add_window(reader, None, shown="where the last import stopped")
    reader.add_argument(
        "--window-days", type=_days, default=1, metavar="N", help="days of accounting per query (default: 1)"
    )
    add(reader, "threads", default=2)
    add_as_job(reader, "with --into, on a file system that the nodes share")
    status = actions.add_parser("status", help="sources, positions, runs by month and state, rejected rows")
    for action in (reader, status):
        action.add_argument("--into", type=path_word, metavar="FILE", help="store file (default: the hub's)")
        add(action, "json")
        add_config(action)


def run(options: argparse.Namespace) -> int:
    """Do the action on the store and print the result."""
    import json

    from gpuwaste.cli.history_import import bring, bring_as_job, stand

    if options.action == "import" and options.as_job:
        return bring_as_job(options, config_of(options))
    document, text = (stand if options.action == "status" else bring)(options, config_of(options))
    sys.stdout.write(json.dumps(document.to_json(), indent=1) + "\n" if options.json else text)
    return 0


def _days(text: str) -> int:
    return number_word(text, 1, 366)

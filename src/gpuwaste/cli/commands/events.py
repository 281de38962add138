"""Events of jobs, GPUs, nodes and models: list them, check outlets and inlets, print their state."""

import argparse

from gpuwaste.cli.options import add, add_config, config_of, print_own
from gpuwaste.cli.words import count_word, path_word

HELP = "events, the outlets that send them and the inlets that receive those of other systems"
EXAMPLES = (
    ("gpuwaste events list --kinds 'waste.*'", "GPUs that are held idle, as CloudEvents."),
    ("gpuwaste events check", "Before the hub reads new outlets."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    text = "Print the events of your runs, for operators all, as CloudEvents: one JSON object per line."
    listed = actions.add_parser("list", help="print events as lines of JSON", description=text)
    listed.add_argument("--kinds", metavar="KINDS", default="", help="job.started, waste.*, ... (default: all)")
    listed.add_argument(
        "--after", metavar="N", type=count_word, default=0, help="place in the stream to begin after (default: 0)"
    )
    listed.add_argument("--follow", action="store_true", help="follow new events until interrupted")
    add_config(listed)
    kinds = actions.add_parser("kinds", help="every kind of event, with --json their schemas")
    add(kinds, "json")
    check = actions.add_parser("check", help="print what each outlet and inlet does; exit code 2 if a file is wrong")
    check.add_argument(
        "paths",
        nargs="*",
        type=path_word,
        metavar="DIR|FILE",
        help="outlets and inlets (default: hub.outlets_dir, hub.inlets_dir)",
    )
    add_config(check)
    status = actions.add_parser("status", help="outlets, inlets and quarantined events (operators)")
    add(status, "json")
    add_config(status)


def run(options: argparse.Namespace) -> int:
    """Do it and print the result."""
    if options.action == "kinds":
        from gpuwaste.act.events.event_text import kinds_text
        from gpuwaste.act.events.events_resource import catalogue_document

        print_own(catalogue_document(), kinds_text, as_json=options.json)
        return 0
    from gpuwaste.cli import event_stream

    config = config_of(options)
    if options.action == "status":
        return event_stream.status(config, as_json=options.json)
    if options.action == "check":
        return event_stream.check(options.paths, config)
    return event_stream.listed(options, config)

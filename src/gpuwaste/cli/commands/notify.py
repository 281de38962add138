"""Digests of idle GPU-time by mail: your own wish, what you would be told; for operators run, replay and audit."""

import argparse

from gpuwaste.cli.options import add_config, add_formats, config_of, emit

HELP = "mail about idle GPUs: off, on, preview; run, replay, list"
EXAMPLES = (
    ("gpuwaste notify preview", "The digest that you would get now."),
    ("gpuwaste notify replay -S now-90days", "To whom mail would have gone."),
)
_ROWS = 10_000
_TEXT_ROWS = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (("off", "send me no digests"), ("on", "send me digests again")):
        add_config(actions.add_parser(name, help=text, description=f"Tell the hub: {text}."))
    text = "what a user would read if a period ended now"
    preview = actions.add_parser("preview", help=text, description=f"Print {text}.")
    preview.add_argument("-u", "--user", metavar="U", help="this user (operators; default: you)")
    text = "who was told and who was not, and why"
    listed = actions.add_parser("list", help=text, description=f"Print {text}.")
    listed.add_argument("-u", "--user", metavar="U", help="of this user (default: all that you may see)")
    _add_window(listed, "now-60days")
    text = "whom the periods of a past time would have told, how often, of how much"
    replay = actions.add_parser("replay", help=text, description=f"Print {text} (operators).")
    _add_window(replay, "now-28days")
    text = "decide on the newest period now, and send"
    run_ = actions.add_parser("run", help=text, description=f"Have the hub {text} (operators).")
    run_.add_argument("--dry-run", action="store_true", help="decide only: note and send nothing")
    for sub in (preview, listed, replay, run_):
        add_formats(sub)
        add_config(sub)


def run(options: argparse.Namespace) -> int:
    """Ask the hub and print its answer."""
    from gpuwaste.cli import notices

    if options.action in {"on", "off"}:
        return notices.wish(config_of(options), mail=options.action == "on")
    document, text = notices.ask(options, config_of(options), _ROWS if options.form else _TEXT_ROWS)
    return emit(document, options, text, empty=notices.is_empty(document), wasted=None)


def _add_window(parser: argparse.ArgumentParser, start: str) -> None:
    parser.add_argument("-S", "--starttime", default=start, metavar="TIME", help=f"as sacct (default {start})")
    parser.add_argument("-E", "--endtime", default="now", metavar="TIME", help="as sacct (default now)")

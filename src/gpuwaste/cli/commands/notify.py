"""Mail digests of idle GPU time: stop or resume your own, preview it; operators run, replay and list them."""

import argparse

from gpuwaste.cli.options import add, add_config, add_formats, add_window, config_of, emit, typed

HELP = "mail digests of idle GPU time: off, on, preview, list, replay, run"
EXAMPLES = (
    ("gpuwaste notify preview", "The digest that you would get now."),
    ("gpuwaste notify replay -S now-90days", "Who would have got digests."),
)
_ROWS = 10_000
_TEXT_ROWS = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("off", "stop sending me digests and notices of time limits"),
        ("on", "send me digests and notices of time limits again"),
    ):
        add_config(actions.add_parser(name, help=text, description=f"{text.capitalize()}."))
    text = "the digest that would be sent if the period ended now"
    preview = actions.add_parser("preview", help=text, description=f"Print {text}.")
    add(preview, "user", "whose digest, operators only", shown="yours")
    text = "who got a digest, who did not, and why"
    listed = actions.add_parser("list", help=text, description=f"Print {text}.")
    add(listed, "user", shown="all that you may see")
    add_window(listed, "now-60days")
    text = "who would have got digests in a past period, how often, for how much"
    replay = actions.add_parser("replay", help=text, description=f"Print {text} (operators).")
    add_window(replay, "now-28days")
    text = "decide on the newest period now and send its digests"
    run_ = actions.add_parser("run", help=text, description=f"Have the hub {text} (operators).")
    run_.add_argument("--dry-run", action="store_true", help="decide only; record and send nothing")
    for sub in (preview, listed, replay, run_):
        add_formats(sub)
        add_config(sub)


def run(options: argparse.Namespace) -> int:
    """Ask the hub and print its answer."""
    from gpuwaste.cli import digests

    if options.action in {"on", "off"}:
        return digests.wish(config_of(options), mail=options.action == "on")
    raw, kind, text = digests.ask(options, config_of(options), _ROWS if options.form else _TEXT_ROWS)
    document = typed(raw, kind, printed=options.form is None)
    return emit(raw, document, options, text, empty=digests.is_empty(document), wasted=None)

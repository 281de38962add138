"""Mail digests of idle GPU time: stop or resume your own, preview it; operators run, replay and list them."""

import argparse
import sys

from gpuwaste.cli.options import add_config, add_forms, config_of, emit, typed
from gpuwaste.cli.resource_commands import add_reads

HELP = "mail digests of idle GPU time: off, on, preview, list, replay, run"
EXAMPLES = (
    ("gpuwaste notify preview", "The digest that you would get now."),
    ("gpuwaste notify replay -S now-90days", "Who would have got digests."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("off", "stop sending me digests and notices of time limits"),
        ("on", "send me digests and notices of time limits again"),
    ):
        add_config(actions.add_parser(name, help=text, description=f"{text.capitalize()}."))
    add_reads(actions, "notify")
    text = "decide on the newest period now and send its digests"
    run_ = actions.add_parser("run", help=text, description=f"Have the hub {text} (operators).")
    run_.add_argument("--dry-run", action="store_true", help="decide only; record and send nothing")
    add_forms(run_)
    add_config(run_)


def run(options: argparse.Namespace) -> int:
    """Have the hub do it and print its answer."""
    from gpuwaste.act.notify.notice_text import run_text
    from gpuwaste.act.notify.notice_types import NoticeRun
    from gpuwaste.cli.hub_access import LONG_PATIENCE_S, hub_client
    from gpuwaste.core.text import harmless

    if options.action == "run":
        raw = hub_client(config_of(options), LONG_PATIENCE_S).post("/v1/notices/run", {"dry_run": options.dry_run})
        document = typed(raw, NoticeRun, printed=options.form is None)
        return emit(raw, document, options, run_text, empty=False, wasted=None)
    mail = options.action == "on"
    answer = hub_client(config_of(options)).post("/v1/notices/wish", {"mail": mail})
    again = "digests and notices of time limits are sent again"
    words = again if mail else "no digests and no notices of time limits are sent any more"
    sys.stdout.write(f"{harmless(str(answer['user']))}: {words}\n")
    return 0

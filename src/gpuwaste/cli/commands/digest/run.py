"""Have the hub decide on the newest period now and send its digests. For operators."""

import argparse

from gpuwaste.cli.options import add_config, add_forms, config_of, emit, typed

HELP = "decide on the newest period now and send its digests (operators)"
EXAMPLES = (("gpuwaste digest run --dry-run", "Who would get a digest now; nothing is sent."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--dry-run", action="store_true", help="decide only; record and send nothing")
    add_forms(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Have the hub do it and print its answer."""
    from gpuwaste.act.notify.notice_text import run_text
    from gpuwaste.act.notify.notice_types import NoticeRun
    from gpuwaste.cli.hub_access import LONG_PATIENCE_S, hub_client

    raw = hub_client(config_of(options), LONG_PATIENCE_S).post("/v1/notices/run", {"dry_run": options.dry_run})
    document = typed(raw, NoticeRun, printed=options.form is None)
    return emit(raw, document, options, run_text, empty=False, wasted=None)

"""Report what the cluster does now: GPUs held and idle, nodes that report nothing, the queue.

The figures are as old as the reports of the agents: the ages are printed. Users see the counts of all jobs, and the
idle GPUs and silent nodes of their own jobs.
"""

import argparse

from gpuwaste.cli.options import add_config, add_formats, config_of, emit, typed
from gpuwaste.cli.words import count_word

HELP = "GPUs held and idle now, silent nodes, the queue"
EXAMPLES = (
    ("gpuwaste now", "Who holds idle GPUs now, since when; which nodes report nothing; the queue."),
    ("gpuwaste now --limit 1000 --csv", "The jobs with idle GPUs for a spreadsheet."),
)
_ROWS = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--limit", type=count_word, default=_ROWS, metavar="N", help=f"jobs with idle GPUs to print (default: {_ROWS})"
    )
    add_formats(parser, "share of held GPUs that are idle")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Ask the hub and print its answer."""
    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.ledger.now.now_text import now_text
    from gpuwaste.ledger.now.now_types import NowDocument

    raw = ask_hub(config_of(options), "/v1/now", {"limit": options.limit})
    document = typed(raw, NowDocument, printed=options.form is None)
    totals = document.totals
    idle = totals.idle / totals.held if totals.held else None
    return emit(raw, document, options, now_text, empty=False, wasted=idle)

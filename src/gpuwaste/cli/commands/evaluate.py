"""Judge the predictions on the last part of a job history, beside plain methods; nothing is kept."""

import argparse

from gpuwaste.cli.options import add_config, config_of
from gpuwaste.cli.sources import add_sources

HELP = "how good the predictions would have been on a job history, beside plain methods"
EXAMPLES = (("gpuwaste evaluate --swf log.swf.gz", "How good predictions would have been on a public log."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_sources(parser)
    parser.add_argument("--targets", default="", metavar="NAMES", help="these alone, separated by commas (all)")
    parser.add_argument(
        "--protocol",
        choices=("submission", "jfp"),
        default="submission",
        help="jfp: a second column for failures, with facts known only after the run (submission)",
    )
    parser.add_argument("--trials", type=_count, default=0, metavar="N", help="of a search for each target (0: none)")
    parser.add_argument("--seed", type=_count, default=1, metavar="N", help="of the learning (1)")
    parser.add_argument("--threads", type=_count, default=2, metavar="N", help="of the learning (2)")
    parser.add_argument("--json", action="store_true", help="one object {target: {method: {metric: value}}}")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate and print."""
    from gpuwaste.cli.evaluation import evaluate_and_tell

    return evaluate_and_tell(options, config_of(options))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > 1_000_000:  # noqa: PLR2004 more is a slip
        raise argparse.ArgumentTypeError(f"{text[:20]!r}: expected a number up to 1000000")
    return int(text)

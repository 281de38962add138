"""Learn from the job history: a model bundle with its card, in the registry."""

import argparse
from pathlib import Path

from gpuwaste.cli.options import add_config, config_of
from gpuwaste.cli.sources import add_sources

HELP = "learn from the job history; makes a model bundle with a card"
EXAMPLES = (("gpuwaste train -S now-365days", "Learn from a year of this site."),)
_TRIALS = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_sources(parser)
    parser.add_argument("-S", "--since", metavar="TIME", help="learn from jobs submitted since then, as sacct's -S")
    parser.add_argument(
        "--targets", default="", metavar="NAMES", help="these alone, separated by commas (default: all)"
    )
    parser.add_argument(
        "--trials", type=_count, default=_TRIALS, metavar="N", help=f"of each search ({_TRIALS}); 0: none"
    )
    parser.add_argument("--seed", type=_count, default=1, metavar="N", help="of all that is drawn (1)")
    parser.add_argument("--threads", type=_count, default=2, metavar="N", help="of the learning (2)")
    parser.add_argument(
        "--time-budget", type=_count, metavar="S", help="seconds after which no new trial begins; not reproducible"
    )
    parser.add_argument("--into", type=Path, metavar="DIR", help="another registry than common.models_dir")
    parser.add_argument(
        "--promote", action="store_true", help="use it at once (done anyway where there is no model yet)"
    )
    parser.add_argument("--json", action="store_true", help="print the card as JSON")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Train, and print what came of it."""
    from gpuwaste.cli.training import train_and_tell

    return train_and_tell(options, config_of(options))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > 1_000_000:  # noqa: PLR2004 more is a slip
        raise argparse.ArgumentTypeError(f"{text[:20]!r}: expected a number up to 1000000")
    return int(text)

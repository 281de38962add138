"""`gpuwaste simulate --strict`: what cannot be simulated is refused, not left out."""

import argparse
from typing import TYPE_CHECKING

from gpuwaste.core.errors import ParseError

if TYPE_CHECKING:
    from gpuwaste.sim.document import SimulationDocument


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Add --strict."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse a history with rows or jobs that cannot be simulated (default: leave them out and count them)",
    )


def check_strict(document: "SimulationDocument", options: argparse.Namespace) -> None:
    """Raise ParseError with --strict where anything was left out."""
    if not options.strict:
        return
    from gpuwaste.sim.left_out import left_out_words

    found = "; ".join(left_out_words(document))
    if found:
        raise ParseError(f"--strict: {found}: correct the history, or simulate without --strict")

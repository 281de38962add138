"""python -m tools.scorecard [--data DIR] [--into FILE] [--logs NAMES] [--processes N] [--weekly]: writes it."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.data.places import own_place, places
from tools.scorecard.logs import LOGS

_ROOT = Path(__file__).parents[2]


def main(argv: Sequence[str]) -> int:
    """Make every part, each in a process of its own, and write the page. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="make scorecard", description=__doc__)
    parser.add_argument("--data", type=Path, default=next(places(), own_place()))
    parser.add_argument("--into", type=Path, default=_ROOT / "docs" / "scorecard.md")
    parser.add_argument("--logs", default="", help="names of logs, separated by commas (all)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--weekly", action="store_true", help="write only the section on retraining, of a page there is"
    )
    options = parser.parse_args(argv)
    # Threads of the learning that wait by spinning are ten times slower on a busy host; read when they start.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from tools.scorecard.make import make, make_weekly, say  # noqa: PLC0415 XGBoost is loaded after that

    if not options.data.is_dir():
        parser.exit(
            1, f"scorecard: {options.data}: no data there: make data fetches what its publishers offer as it is\n"
        )
    wanted = [name.strip() for name in options.logs.split(",") if name.strip()]
    logs = [log for log in LOGS if not wanted or log.name in wanted]
    began = time.monotonic()
    if options.weekly:
        text = make_weekly(logs, options.data, options.into.read_text(encoding="utf-8"))
    else:
        text = make(logs, options.data, options.processes)
    options.into.write_text(text, encoding="utf-8")
    say(f"{options.into}: {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

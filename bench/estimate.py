"""Figure: memory estimated for programs beside XLA's figure for an H100, and what 100,000 lines of HLO cost.

Reads 40 programs, each before and after optimization, with XLA's memory_analysis for an H100; nothing runs on a GPU.
Prints tables, then one line of JSON. The rules of liveness were written on these programs: their errors are those of a
fit, not of programs never seen.
"""

import argparse
import json
from pathlib import Path

from bench import estimate_memory, estimate_speed

PROGRAMS = Path("../shared/data/profiles/hlo_h100")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=PROGRAMS, help="folder of NAME.json, NAME.{pre,opt}.hlo.gz")
    options = parser.parse_args()
    found = {"speed": estimate_speed.measured()}
    print(estimate_speed.text(found["speed"]))
    if options.programs.is_dir():
        memory = estimate_memory.measured(options.programs)
        print(estimate_memory.text(memory))
        found["memory"] = memory["summary"]
    else:
        print(f"{options.programs}: not there; memory is not measured")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

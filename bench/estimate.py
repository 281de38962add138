"""Figure: memory of programs beside XLA's figure, step times from public measurements, what an answer costs.

Reads 40 programs, each before and after optimization, with XLA's memory_analysis for an H100; nothing runs on a GPU.
Then judges the step times that are shipped on NeuSight's and timm's measurements, by fits without the GPU judged.
Prints tables, then one line of JSON. The rules of liveness were written on these programs: their errors are those of a
fit. --held-out has others.
"""

import argparse
import json
from pathlib import Path

from bench import estimate_memory, estimate_public, estimate_speed

PROGRAMS = Path("../shared/data/profiles/hlo_h100")
PROFILES = Path("../shared/data/profiles")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=PROGRAMS, help="folder of NAME.json, NAME.{pre,opt}.hlo.gz")
    parser.add_argument("--held-out", type=Path, help="folder of tools/xla_memory.py, programs without a rule of ours")
    parser.add_argument("--profiles", type=Path, default=PROFILES, help="folder of neusight/ and timm/")
    parser.add_argument("--seed", type=int, default=1, help="of the samples of the other methods (default: 1)")
    options = parser.parse_args()
    found = {"speed": estimate_speed.measured()}
    print(estimate_speed.text(found["speed"]))
    if options.programs.is_dir():
        memory = estimate_memory.measured(options.programs)
        print(estimate_memory.text(memory))
        found["memory"] = memory["summary"]
    else:
        print(f"{options.programs}: not there; memory is not measured")
    if options.held_out is not None:
        for when, title in (("pre", "before"), ("opt", "optimized")):
            found[f"held out, {title}"] = estimate_memory.held_out(options.held_out, when)
            print(estimate_memory.held_out_text(found[f"held out, {title}"], title))
    if (options.profiles / "neusight").is_dir():
        found["public"] = estimate_public.measured(options.profiles, options.seed)
        print(estimate_public.text(found["public"]))
    else:
        print(f"{options.profiles}/neusight: not there; step times from public measurements are not judged")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

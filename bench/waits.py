"""Figure: waits predicted on logs in the order of time, three baselines beside (--every 4).

Logs of the Parallel Workloads Archive (`make data`). At each submission the queue is played forward with run times
drawn from the jobs that had ended; trees learn from that and from what else was known, and past errors shift the
quantiles. Judged are the jobs after the first fifth of a log: coverage of p10 to p90, pinball loss in seconds. Then one
line of JSON.
"""

import argparse
import json
import time
from typing import Any, Final

from msgspec.structs import asdict
from tools.data.places import find

from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.models.wait_replay import wait_log, wait_rows
from gpuwaste.models.wait_trees import LEARNT, figures, learnt

LOGS: Final = {
    "KTH-SP2": "swf/KTH-SP2-1996-2.1-cln.swf.xz",
    "CEA-Curie 03/04": "swf/CEA-Curie-sample-2012-03_04.with_status.swf.xz",
    "CEA-Curie 06/07": "swf/CEA-Curie-sample-2012-06_07.with_status.swf.xz",
}
COVERAGE: Final = (0.75, 0.85)
GAIN: Final = -0.25


def main() -> int:
    """Replay each log and print what each way to predict comes to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20, help="simulations of the queue at each submission")
    parser.add_argument("--every", type=int, default=1, help="predict each n-th submission only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--log", action="append", choices=list(LOGS), help="only this log (repeatable)")
    options = parser.parse_args()
    told: list[dict[str, Any]] = []
    for name in options.log or LOGS:
        path = find(LOGS[name])
        if path is None:
            print(f"{name}: no log here: run `make data`")
            continue
        began = time.process_time()
        source = swf_table(path)
        header = source.facts.header.get("MaxProcs", "")
        log = wait_log(source.table, int(header) if header.isdigit() else None)
        rows = wait_rows(log, draws=options.draws, every=options.every)
        replayed = time.process_time() - began
        found, judged = figures(rows, learnt(rows, seed=options.seed, threads=options.threads))
        each_ms, whole = 1000 * replayed / max(len(rows.submit), 1), time.process_time() - began
        print(f"{name}: {judged:,} of {len(rows.submit):,} submissions judged, {whole:.0f} CPU s")
        print(f"  queue and features {each_ms:.1f} CPU ms a submission; trees {whole - replayed:.0f} CPU s")
        print(f"  {'':55} {'inside':>8} {'below':>7} {'above':>7} {'pinball s':>10} {'beside best':>12}")
        for each in found:
            shares = f"{each.coverage:8.1%} {each.below:7.1%} {each.above:7.1%}"
            print(f"  {each.method:55} {shares} {each.pinball_s:10.1f} {each.beside_best:+12.1%}")
        last = next(each for each in found if each.method == LEARNT)
        held = COVERAGE[0] <= last.coverage <= COVERAGE[1] and last.beside_best <= GAIN
        met = "met" if held else "missed"
        print(f"  target: 75 to 85 % inside, pinball loss 25 % below the best baseline's: {met}", flush=True)
        told.append({"log": name, "judged": judged, "held": held, "figures": [asdict(each) for each in found]})
    print(json.dumps({"bench": "waits", "logs": told}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

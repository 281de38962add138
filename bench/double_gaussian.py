"""Figure: FCFS against conservative backfill on the double Gaussian of the Flux emulator's evaluation, 300 seeds.

Neither the curves' places and widths nor the order of the jobs were published with that evaluation (makespan -16.7 %,
utilization 77.5 % to 92.9 %), so that one figure says little: a seed draws them, and the distribution is printed, for
jobs along the curve and for jobs in a random order. Then one line of JSON.
"""

import argparse
import json
from typing import Any, Final

import numpy as np

from gpuwaste.sim.generated_load import generated, generator_parameters
from gpuwaste.sim.parameters import read_named
from gpuwaste.sim.schedule_metrics import waits
from gpuwaste.sim.schedulers import conservative, fcfs
from gpuwaste.sim.trace import trace_of

REPORTED: Final = {"makespan": -0.167, "fcfs": 0.775, "conservative": 0.929}
ORDERS: Final = {"along the curve": 0, "in a random order": 1}


def main() -> int:
    """Print the distributions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    options = parser.parse_args()
    told = []
    print(f"{'jobs':20} {'':14} {'mean':>8} {'sd':>7} {'p5':>8} {'median':>8} {'p95':>8} {'reported':>9}")
    for order, shuffle in ORDERS.items():
        found = np.array([compared(seed, shuffle) for seed in range(1, options.seeds + 1)])
        for name, column in zip(REPORTED, found.T, strict=True):
            p5, median, p95 = np.percentile(column, [5, 50, 95])
            figures = {"mean": column.mean(), "sd": column.std(ddof=1), "p5": p5, "median": median, "p95": p95}
            row = " ".join(f"{value:8.1%}" if key != "sd" else f"{value:7.1%}" for key, value in figures.items())
            print(f"{order:20} {name:14} {row} {REPORTED[name]:9.1%}")
            told.append(
                {"order": order, "figure": name, **{key: round(float(value), 5) for key, value in figures.items()}}
            )
    print(json.dumps({"bench": "double_gaussian", "seeds": options.seeds, "figures": told}))
    return 0


def compared(seed: int, shuffle: int) -> tuple[float, float, float]:
    """Return the change of the makespan, and the utilization under FCFS and under conservative backfill."""
    words = f"double_gaussian:seed={seed},shuffle={shuffle}"
    load = generated(read_named(words, generator_parameters(), "double_gaussian"))
    trace, _ = trace_of(load.table(), load.processors)
    scheduler: Any
    results = []
    for scheduler in (fcfs, conservative):
        start = scheduler.starts(trace.planned(trace.limit_s), load.processors)
        results.append(waits(trace, start, load.processors))
    first, second = results
    return second.makespan_s / first.makespan_s - 1, first.utilization, second.utilization


if __name__ == "__main__":
    raise SystemExit(main())

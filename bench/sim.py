"""Figure: jobs a second that each scheduler simulates, memory a job, starts beside a peer's (--pyss DIR).

Logs of the Parallel Workloads Archive (`make data`), and a million drawn jobs on 10,000 processors: sizes and run times
over four powers of ten, limits up to ten times the run, a load of 90 %. Each scheduler is compiled first, then timed
ROUNDS times in CPU seconds of its own process; the median and the range are printed. `--pyss DIR` runs pyss' EASY and
conservative on the smaller logs too. `--only NAMES` takes some schedulers. Those that place jobs on nodes play each log
once and twice in a row, as the time per job should not grow with the log. Then one line of JSON.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from tools.data.places import find

from bench.sim_nodes import TWICE, cluster_named, trace_named
from bench.sim_pyss import pyss_starts
from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.sim.simulation import SCHEDULERS, NodeScheduler, Scheduler, places_on_nodes
from gpuwaste.sim.trace import Trace, trace_of
from gpuwaste.testing.process_memory import peak_rss_b

LOGS: Final = {
    "lublin_256": ("swf/lublin_256.swf.xz", 256),
    "KTH-SP2": ("swf/KTH-SP2-1996-2.1-cln.swf.xz", 100),
    "CEA-Curie": ("swf/CEA-Curie-2011-2.1-cln.recon.swf.xz", 93312),
}
DRAWN: Final = "1 M drawn, 10,000 processors"
TARGETS: Final = {
    ("lublin_256", "easy"): 1_000_000,
    (DRAWN, "easy"): 500_000,
    ("lublin_256", "conservative"): 50_000,
    ("CEA-Curie", "slurm"): 2_000,
}
SMALL: Final = 30_000  # jobs that a peer in Python can be asked for


def main() -> int:
    """Time each scheduler on each trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="drawn jobs")
    parser.add_argument("--pyss", type=Path, help="a checkout of pyss, which runs beside ours")
    parser.add_argument("--only", metavar="NAMES", help="these schedulers")
    parser.add_argument("--logs", metavar="NAMES", help="these logs")
    options = parser.parse_args()
    wanted = SCHEDULERS if options.only is None else options.only.split(",")
    logs = (*LOGS, *(name + TWICE for name in LOGS), DRAWN) if options.logs is None else options.logs.split(",")
    figures: list[dict[str, Any]] = []
    print(f"{'trace':30} {'scheduler':14} {'jobs/s (range)':32} {'target':>10} {'B/job':>6}  peer")
    for name in logs:
        for scheduler in wanted:
            on_nodes = places_on_nodes(SCHEDULERS[scheduler])
            if (on_nodes and name == DRAWN) or (name.endswith(TWICE) and not on_nodes):
                continue
            if scheduler == "fair_share" and name in {DRAWN, "CEA-Curie"}:
                continue  # it sorts its whole queue in each cycle: hours
            with multiprocessing.get_context("spawn").Pool(1) as pool:  # memory is counted for each alone
                found = pool.apply(timed, (name, scheduler, options.rounds, options.jobs, options.pyss))
            if found is None:
                print(f"{name:30} no log here: run `make data`")
                break
            figures.append(found)
            rate = f"{found['jobs_s']:,} ({found['least']:,} to {found['most']:,})"
            told = f"{found['target'] or '':>10} {found['b_per_job']:>6}  {found['peer']}"
            print(f"{name:30} {scheduler:14} {rate:32} {told}")
    print(json.dumps({"bench": "sim", "figures": figures}))
    return 0


def timed(name: str, scheduler: str, rounds: int, drawn: int, pyss: Path | None) -> dict[str, Any] | None:
    """Run one scheduler on one trace; None where the log is not here."""
    chosen = SCHEDULERS[scheduler]
    if places_on_nodes(chosen):
        return timed_on_nodes(name, scheduler, chosen, rounds)
    if name == DRAWN:
        trace, processors = drawn_trace(drawn, 10_000), 10_000
    else:
        file, processors = LOGS[name]
        path = find(file)
        if path is None:
            return None
        trace, _ = trace_of(swf_table(path).table, processors)
    jobs, module = trace.planned(trace.limit_s), cast("Scheduler", chosen)
    module.starts(trace.first(10).planned(trace.limit_s[:10]), processors)
    before, rates = peak_rss_b(os.getpid()), []
    starts = module.starts(jobs, processors)
    memory = peak_rss_b(os.getpid()) - before
    for _ in range(rounds):
        began = time.process_time()
        module.starts(jobs, processors)
        rates.append(round(len(trace) / (time.process_time() - began)))
    peer = ""
    if pyss is not None and len(trace) <= SMALL and scheduler in {"easy", "conservative"}:
        theirs, seconds = pyss_starts(pyss, trace, processors, scheduler)
        same = float(np.mean(theirs == starts))
        means = [f"{(found - trace.submit).mean():.0f} s" for found in (theirs, starts)]
        peer = f"pyss {round(len(trace) / seconds):,} jobs/s, {same:.2%} of starts equal, mean waits {', '.join(means)}"
    return figure((name, scheduler), rates, memory / len(trace), peer)


def timed_on_nodes(name: str, scheduler: str, module: NodeScheduler, rounds: int) -> dict[str, Any] | None:
    """Run one scheduler on the nodes of a log's machine; None where the log is not here."""
    found = trace_named(name, LOGS[name.removesuffix(TWICE)][0])
    if found is None:
        return None
    table, trace = found
    cluster = cluster_named(name)
    few = trace.first(10)
    module.starts_on(table, few, cluster, few.limit_s)
    before, rates, memory = peak_rss_b(os.getpid()), [], 0
    for _ in range(rounds):
        began = time.process_time()
        placed = module.starts_on(table, trace, cluster, trace.limit_s)
        rates.append(round(len(trace) / (time.process_time() - began)))
        memory = memory or peak_rss_b(os.getpid()) - before
    peer = f"mean wait {float((placed.start - trace.submit).mean()):.0f} s"
    return figure((name, scheduler), rates, memory / len(trace), peer)


def figure(run: tuple[str, str], rates: list[int], b_per_job: float, peer: str) -> dict[str, Any]:
    """Return what is printed of a trace and a scheduler."""
    return {
        "trace": run[0],
        "scheduler": run[1],
        "jobs_s": round(statistics.median(rates)),
        "least": min(rates),
        "most": max(rates),
        "target": TARGETS.get(run),
        "b_per_job": round(b_per_job),
        "peer": peer,
    }


def drawn_trace(count: int, processors: int) -> Trace:
    """Draw jobs of which the load is 90 %, always the same."""
    rng = np.random.default_rng(1)
    procs = np.minimum(np.floor(10 ** rng.uniform(0, 3, count)), processors).astype(np.int64)
    run = np.floor(10 ** rng.uniform(1, 4.5, count)).astype(np.int64)
    gap = float((procs * run).mean()) / (0.9 * processors)
    submit = np.floor(np.cumsum(rng.exponential(gap, count))).astype(np.int64)
    limit = np.maximum(run, (run * 10 ** rng.uniform(0, 1, count)).astype(np.int64))
    absent = np.full(count, -1, dtype=np.int64)
    return Trace(submit, run, limit, procs, rng.integers(0, 500, count), absent, np.arange(count, dtype=np.int64))


if __name__ == "__main__":
    raise SystemExit(main())

"""Figure: the simulator's schedulers beside runs of a real slurmctld on a GPU trace (an hour; --hours 1 --runs 2).

The trace is drawn: 100 nodes of 4 GPUs (half of them of each of two types), jobs of 1 to 16 GPUs that ask for --load
times the machine while they are submitted, limits up to five times the run. It is played --runs times with
`--engine slurmctld`; schedulers that count processors play it with a processor for each GPU. Scheduler slurm plays it
twice more: at the instants of each run (`given`: when passes came to which job, submissions, how long jobs held nodes),
and with jobs that hold their nodes as much longer as they did in the runs, because of the speed. `-o DIR` keeps the
runs, so that a later call plays only what is missing. Then one line of JSON.
"""

import argparse
import inspect
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.history.job_table import JobTable, table_of
from gpuwaste.sim.real.engine import EngineStudy, instants_path, play_ensemble
from gpuwaste.sim.real.instants import ControllerInstant, read_instants_csv
from gpuwaste.sim.real.real_jobs import ReplayedOutcome, read_csv
from gpuwaste.sim.real.replayed_instants import starts_at
from gpuwaste.sim.schedule_metrics import start_of
from gpuwaste.sim.simulation import SCHEDULERS, Machine, simulate
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition

TYPES: Final = ("a100", "v100")
GPUS: Final = 4  # of a node
SIZES: Final = (1, 2, 4, 8, 16)
SHARES: Final = (0.4, 0.25, 0.2, 0.1, 0.05)


def main() -> int:
    """Play the ensemble, simulate, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--hours", type=float, default=4.0, help="of the trace")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--speed", type=int, default=20)
    parser.add_argument("--load", type=float, default=1.5, help="GPU time asked for over that of the machine")
    parser.add_argument("-o", "--output", type=Path, help="directory of the runs")
    options = parser.parse_args()
    drawn = (options.nodes, options.hours * 3600, options.load)
    model, table = machine(options.nodes), trace(*drawn)
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.output or Path(scratch)
        study = EngineStudy(table, "drawn GPU jobs", model, options.runs, options.speed, directory)
        document = play_ensemble(study, _told)
        complete = [run.number for run in document.runs if run.complete]
        runs = [read_csv(directory / f"run-{number:03}.csv") for number in complete]
        instants = [read_instants_csv(instants_path(directory, number)) for number in complete]
    sys.stderr.write("\n")
    print(
        f"{document.jobs} jobs, {document.nodes} nodes, {document.gpus} GPUs, speed {document.speed}, {len(runs)} runs"
    )
    figures: dict[str, Any] = {"runs": [_run(run) for run in document.runs]}
    if document.agreement and document.mean_wait_s and document.p95_wait_s:
        own = document.agreement
        figures["slurmctld"] = {
            "median_start_s": own.median_start_s,
            "within_5_s": own.within_5_s,
            "within_60_s": own.within_60_s,
            "mean_wait_s": document.mean_wait_s.mean,
            "mean_wait_deviation_s": document.mean_wait_s.deviation,
            "p95_wait_s": document.p95_wait_s.mean,
            "p95_wait_deviation_s": document.p95_wait_s.deviation,
        }
        _print("slurmctld", figures["slurmctld"])
    for name in SCHEDULERS:
        found = simulated(name, table, model)
        if found is not None:
            figures[name] = compared(found, runs)
            _print(name, figures[name])
    figures["given"] = []
    for number, run, given in zip(complete, runs, instants, strict=True):
        found = at_instants(run, given, table, model)
        early = [each for each in run if (each.ended.start or 0) < run[0].submit + HOUR_S]
        first = compared(found, [early])["within_5_s"]
        figures["given"].append({**compared(found, [run]), "within_5_s_first_hour": first})
        _print(f"given, run {number}", figures["given"][-1])
    longer = round(float(np.mean([run.mean_ran_longer_s or 0 for run in document.runs])))
    held = simulated("slurm", trace(*drawn, longer_s=longer), model)
    figures["longer"] = {"longer_s": longer, **compared(held or {}, runs)}
    _print(f"slurm, +{longer} s", figures["longer"])
    print(json.dumps({"bench": "engine", "load_of_host": os.getloadavg()[0], "figures": figures}))
    return 0


def machine(count: int) -> ClusterModel:
    """Return nodes with a CPU for each GPU, so that schedulers of processors count GPUs."""
    nodes = tuple(Node(f"g{n}", GPUS, 64 << 30, {TYPES[n % 2]: GPUS}) for n in range(count))
    names = tuple(node.name for node in nodes)
    settings = {"SchedulerParameters": "bf_interval=30,bf_continue", "SelectTypeParameters": "CR_CPU"}
    return ClusterModel("bench", nodes, (Partition("gpu", names, default=True),), settings=settings)


def trace(nodes: int, length_s: float, load: float, *, longer_s: int = 0, seed: int = 1) -> JobTable:
    """Draw jobs that are submitted within so many seconds, always the same; each runs `longer_s` longer than drawn."""
    rng = np.random.default_rng(seed)
    jobs: list[JobRecord] = []
    asked, room = 0.0, load * nodes * GPUS * length_s
    while asked < room:
        gpus = min(int(rng.choice(SIZES, p=SHARES)), GPUS * (nodes // 2))
        run = int(np.clip(rng.lognormal(6.8, 0.9), 60, 7200))
        limit = -(-int(run * rng.uniform(1.05, 5)) // 60) * 60
        kind = ("", f":{TYPES[rng.integers(2)]}")[int(rng.random() < 0.5)]
        count = -(-gpus // GPUS)
        jobs.append(
            _job(len(jobs) + 1, int(rng.uniform(0, length_s)), run + longer_s, limit, gpus, nodes=count, kind=kind)
        )
        asked += gpus * run
    return table_of(jobs)


def _job(number: int, submit: int, run: int, limit: int, gpus: int, *, nodes: int, kind: str) -> JobRecord:
    typed = f",gres/gpu{kind}={gpus}" if kind else ""
    return JobRecord(
        cluster="bench",
        job_id=number,
        user=f"u{number % 20}",
        submit=1_700_000_000 + submit,
        start=1_700_000_000 + submit,
        end=1_700_000_000 + submit + run,
        elapsed_s=run,
        state="COMPLETED",
        partition="gpu",
        time_limit_s=limit,
        cpus=gpus,
        req_tres=f"cpu={gpus},node={nodes},gres/gpu={gpus}{typed}",
    )


def simulated(name: str, table: JobTable, model: ClusterModel) -> dict[int, tuple[int, int]] | None:
    """Return submission and start of each job by its id; None for a scheduler that this simulator cannot ask."""
    more: dict[str, Any] = {}
    if getattr(SCHEDULERS[name], "NEEDS_CLUSTER", False):
        if "cluster" not in inspect.signature(simulate).parameters:
            return None
        more["cluster"] = model
    _, played, plays = simulate(
        table, "drawn", Machine(model.cpus, "given"), (name,), walltime="user", first=None, **more
    )
    ids = table.job_id[played.row].tolist()
    times = zip(played.submit.tolist(), start_of(plays[name]).tolist(), strict=True)
    return {job: each for job, each in zip(ids, times, strict=True) if each[1] >= 0}


def at_instants(
    run: list[ReplayedOutcome], instants: list[ControllerInstant], table: JobTable, model: ClusterModel
) -> dict[int, tuple[int, int]]:
    """Return submission in the run and start in the model of each job by its id, at the instants of a run."""
    starts = zip(run, starts_at(instants, table, model), strict=True)
    return {each.job_id: (each.ended.submitted or 0, start) for each, start in starts if start is not None}


def compared(found: dict[int, tuple[int, int]], runs: list[list[ReplayedOutcome]]) -> dict[str, float]:
    """Return how far a scheduler's starts are from each run's, and its waits from the ensemble's mean."""
    apart, means, highs = [], [], []
    for run in runs:
        started = [each for each in run if each.ended.start is not None and each.ended.submitted is not None]
        apart += [abs(found[each.job_id][1] - (each.ended.start or 0)) for each in started if each.job_id in found]
        waits = [(each.ended.start or 0) - (each.ended.submitted or 0) for each in started]
        means.append(float(np.mean(waits)))
        highs.append(float(np.percentile(waits, 95)))
    waits = [start - submit for submit, start in found.values()]
    mean, high = float(np.mean(waits)), float(np.percentile(waits, 95))
    return {
        "median_start_s": float(np.median(apart)),
        "within_5_s": round(float(np.mean(np.array(apart) <= 5)), 4),
        "within_60_s": round(float(np.mean(np.array(apart) <= 60)), 4),
        "mean_wait_s": round(mean, 1),
        "mean_wait_off": round(mean / float(np.mean(means)) - 1, 4) if np.mean(means) else 0.0,
        "p95_wait_s": round(high, 1),
        "p95_wait_off": round(high / float(np.mean(highs)) - 1, 4) if np.mean(highs) else 0.0,
    }


def _run(run: Any) -> dict[str, Any]:
    return {name: getattr(run, name) for name in run.__struct_fields__}


def _print(name: str, figures: dict[str, float]) -> None:
    print(f"{name:14} " + ", ".join(f"{key} {value}" for key, value in figures.items()))


def _told(number: int, submitted: int, ended: int, jobs: int) -> None:
    sys.stderr.write(f"\rrun {number}: {submitted} submitted, {ended} ended of {jobs} ")


if __name__ == "__main__":
    raise SystemExit(main())

"""An ensemble: a trace is played several times, each run is kept, and a later call continues from there."""

import contextlib
import fcntl
import hashlib
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from gpuwaste.core.errors import StoreError, UsageError
from gpuwaste.core.files import open_lock, write_whole
from gpuwaste.core.typed import decode
from gpuwaste.core.units import MINUTE_S
from gpuwaste.core.version import own_version
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.document import spread
from gpuwaste.sim.real.conf import not_taken
from gpuwaste.sim.real.daemons import VirtualCluster
from gpuwaste.sim.real.ensemble_document import Agreement, EngineDocument, RealRun
from gpuwaste.sim.real.faster_clock import require_programs, slurm_version
from gpuwaste.sim.real.instants import write_instants
from gpuwaste.sim.real.real_jobs import ReplayedOutcome, TraceSubmission, read_csv, submissions, write_csv
from gpuwaste.sim.real.run_player import Player
from gpuwaste.sim.schedule_metrics import SHORTEST_S
from gpuwaste.slurm.site.cluster_model import ClusterModel

Progress = Callable[[int, int, int, int], None]
"""Called with the run's number, jobs submitted, jobs ended and jobs of the trace."""
ENSEMBLE: Final = "ensemble.json"
_MOST_B: Final = 1 << 24
_NEAR_S: Final = 5


@dataclass(frozen=True, slots=True)
class EngineStudy:
    """What is played: a trace on a cluster, how many times, at which speed; `text` names the source of the jobs."""

    table: JobTable
    text: str
    model: ClusterModel
    runs: int
    speed: int
    directory: Path
    first: int | None = None


def play_ensemble(study: EngineStudy, progress: Progress = lambda *_: None) -> EngineDocument:
    """Play the runs that the directory lacks and return the results of all runs; they are written there too.

    An interruption keeps the runs so far: `run-NNN.csv` has the jobs that had ended. Raises GpuwasteError.
    """
    require_programs()
    trace, jobs, left_out = submissions(study.table, study.model, study.first)
    memory = bool((study.table.mem_b[trace.row] > 0).any())
    version = slurm_version()
    head = EngineDocument(
        version=own_version(),
        engine=f"slurmctld {version}",
        trace=study.text,
        inputs_sha256=_inputs(jobs, study, version),
        cluster=study.model.name,
        nodes=len(study.model.nodes),
        cpus=study.model.cpus,
        gpus=study.model.gpus,
        jobs=len(jobs),
        speed=study.speed,
        runs=[],
        left_out=left_out,
        not_played=not_played(study.model),
    )
    with _locked(study.directory):
        known = _known(study.directory, head)
        try:
            for number in range(1, study.runs + 1):
                if number not in known or not known[number].complete:
                    _play(study, jobs, number, known, memory=memory, progress=progress)
        finally:
            document = _together(study.directory, head, known)
            _write(study.directory / ENSEMBLE, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    return document


def instants_path(directory: Path, number: int) -> Path:
    """Return the path of a run's slurmctld events."""
    return directory / f"run-{number:03}.instants.csv"


def not_played(model: ClusterModel) -> list[str]:
    """Return what a run lacks of the site, in sentences."""
    said = [
        "Jobs have one user and no account: limits of QOS and associations, fair share and usage have no effect.",
        "The history has no dependencies, requested features or steps.",
    ]
    return said + not_taken(model.settings)


def _play(
    study: EngineStudy,
    jobs: Sequence[TraceSubmission],
    number: int,
    known: dict[int, RealRun],
    *,
    memory: bool,
    progress: Progress,
) -> None:
    path, began, complete, player = study.directory / f"run-{number:03}.csv", time.monotonic(), False, None
    try:
        with VirtualCluster(study.model, study.speed, jobs=len(jobs), memory=memory) as cluster:
            player = Player(cluster, jobs)
            try:
                player.play(lambda *counts: progress(number, *counts), lambda outcomes: write_csv(path, outcomes))
                complete = True
            finally:
                player.read_ended()
                write_instants(instants_path(study.directory, number), player.instants())
    finally:
        if player is not None:
            outcomes = player.outcomes()
            write_csv(path, outcomes)
            wall_s = time.monotonic() - began
            known[number] = run_figures(number, outcomes, jobs, complete=complete, wall_s=wall_s)


def _together(directory: Path, head: EngineDocument, known: dict[int, RealRun]) -> EngineDocument:
    runs = [known[number] for number in sorted(known)]
    complete = [run for run in runs if run.complete]
    starts: list[list[ReplayedOutcome]] = [read_csv(directory / f"run-{run.number:03}.csv") for run in complete]
    return msgspec.structs.replace(
        head,
        runs=runs,
        mean_wait_s=spread([run.mean_wait_s for run in complete if run.mean_wait_s is not None]),
        p95_wait_s=spread([run.p95_wait_s for run in complete if run.p95_wait_s is not None]),
        agreement=agreement(starts),
    )


def _known(directory: Path, head: EngineDocument) -> dict[int, RealRun]:
    """Return the runs that the directory has. Raises UsageError where they are of another trace, cluster or speed."""
    path = directory / ENSEMBLE
    try:
        with path.open("rb") as file:
            found = decode(file.read(_MOST_B), EngineDocument)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: {error}: remove the file, or name another directory with -o") from error
    if found.inputs_sha256 != head.inputs_sha256:
        raise UsageError(
            f"{directory}: contains runs of other jobs, another cluster, another speed or another Slurm:"
            " name another directory with -o"
        )
    return {run.number: run for run in found.runs if (directory / f"run-{run.number:03}.csv").exists()}


def _inputs(jobs: Sequence[TraceSubmission], study: EngineStudy, version: str) -> str:
    given = [list(jobs), study.model, study.speed, version]
    return hashlib.sha256(msgspec.json.encode(given, order="deterministic")).hexdigest()


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock the directory against a second ensemble. Raises StoreError, UsageError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        number = open_lock(directory / ".lock")
    except OSError as error:
        raise StoreError(f"{directory}: cannot be used: {error.strerror or error}") from error
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise UsageError(
            f"{directory}: another simulation writes to it: wait until that one ends, or name another directory"
        ) from None
    try:
        yield
    finally:
        os.close(number)


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error


def run_figures(
    number: int, outcomes: Sequence[ReplayedOutcome], jobs: Sequence[TraceSubmission], *, complete: bool, wall_s: float
) -> RealRun:
    """Return a run's figures over the jobs that ended after they started."""
    states = dict(sorted(Counter(each.ended.state for each in outcomes).items()))
    run_s = {(job.job_id, job.submit): min(job.sleep_s, job.limit_s) for job in jobs}
    return RealRun(number=number, complete=complete, states=states, wall_s=round(wall_s, 1), **_values(outcomes, run_s))


def _values(outcomes: Sequence[ReplayedOutcome], run_s: dict[tuple[int, int], int]) -> dict[str, Any]:
    rows = [
        (
            each.submit,
            each.ended.submitted,
            each.ended.start,
            each.ended.end,
            run_s.get((each.job_id, each.submit), each.ended.end - each.ended.start),
        )
        for each in outcomes
        if each.ended.submitted is not None and each.ended.start is not None and each.ended.end is not None
    ]
    if not rows:
        return {}
    submit, submitted, start, end, nominal = np.array(rows, dtype=np.int64).T
    wait, run = start - submitted, end - start
    p50, p95 = np.percentile(wait, [50, 95])
    return {
        "mean_wait_s": round(float(wait.mean()), 3),
        "p50_wait_s": round(float(p50), 3),
        "p95_wait_s": round(float(p95), 3),
        "max_wait_s": float(wait.max()),
        "mean_bounded_slowdown": round(float(np.maximum((wait + run) / np.maximum(run, SHORTEST_S), 1.0).mean()), 4),
        "makespan_s": float(end.max() - submit.min()),
        "p95_submitted_late_s": round(float(np.percentile(submitted - submit, 95)), 3),
        "mean_ran_longer_s": round(float((run - nominal).mean()), 3),
    }


def agreement(runs: Sequence[Sequence[ReplayedOutcome]]) -> Agreement | None:
    """Return how far the starts of each job are apart, over all pairs of runs; None for less than two."""
    starts = [
        {(each.job_id, each.submit): each.ended.start for each in run if each.ended.start is not None} for run in runs
    ]
    apart = [
        abs(one[job] - other[job])
        for one, other in itertools.combinations(starts, 2)
        for job in one.keys() & other.keys()
    ]
    if not apart:
        return None
    pairs = len(runs) * (len(runs) - 1) // 2
    found = np.array(apart)
    return Agreement(
        pairs=pairs,
        median_start_s=float(np.median(found)),
        within_5_s=round(float(np.mean(found <= _NEAR_S)), 6),
        within_60_s=round(float(np.mean(found <= MINUTE_S)), 6),
    )

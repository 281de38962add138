"""Runs the cases of a sweep: in processes of this host, or as a job array of the site's own Slurm.

A task of the array runs its part of the cases as a sweep on one host does, in a process of its own, and keeps each as
it ends. What was submitted is noted, so that a sweep that was interrupted waits for its tasks instead of submitting
again.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.child_process import ChildEnded, ChildProcess
from gpuwaste.core.errors import GpuwasteError, SlurmError
from gpuwaste.core.files import write_whole
from gpuwaste.sim.sweep_results import SweepFolder, run_case
from gpuwaste.sim.sweep_study import SweepCase

Ended = Callable[[SweepCase, str], None]
Run = Callable[[SweepCase, SweepFolder], str]
_LOOK_S = 1.0  # how often cases that take too long are searched
NOTED: Final = "submitted.json"
_ARRAY_LOOK_S: Final = 2.0


@dataclass(slots=True)
class _Worker:
    child: ChildProcess
    case: SweepCase | None = None
    until: float = 0.0


def run_locally(
    cases: Sequence[SweepCase],
    folder: SweepFolder,
    processes: int,
    timeout_s: float,
    ended: Ended,
    run: Run = run_case,
) -> None:
    """Run cases; `ended` is called for each one with its error, "" for none. `run` is a function of a module.

    However this ends, no process is left; results of ended cases are kept.
    """
    left = list(reversed(cases))
    workers = [_started(folder, run) for _ in range(min(processes, len(cases)))]
    try:
        while left or any(worker.case for worker in workers):
            for worker in workers:
                if worker.case is None and left:
                    _give(worker, left.pop(), timeout_s)
            ready = set(wait([worker.child.pipe for worker in workers if worker.case], _LOOK_S))
            for place, worker in enumerate(workers):
                if worker.case is None:
                    continue
                error = _answer(worker, folder, answered=worker.child.pipe in ready, timeout_s=timeout_s)
                if error is None:
                    continue
                case, worker.case = worker.case, None
                ended(case, error)
                if not worker.child.alive and left:
                    worker.child.end()
                    workers[place] = _started(folder, run)
    finally:
        for worker in workers:
            worker.child.end()


def _give(worker: _Worker, case: SweepCase, timeout_s: float) -> None:
    worker.case, worker.until = case, time.monotonic() + timeout_s
    worker.child.ask(case)


def _answer(worker: _Worker, folder: SweepFolder, *, answered: bool, timeout_s: float) -> str | None:
    """Return the error of the worker's case, "" for none; None where it still runs."""
    case = worker.case
    if case is None:
        return None
    if answered:
        try:
            error: str = worker.child.answer()
        except ChildEnded as ended:
            error = str(ended)
            folder.keep(case, error=error)
        return error
    if time.monotonic() < worker.until:
        return None
    worker.child.end()
    error = f"took longer than {timeout_s:g} s"
    folder.keep(case, error=error)
    return error


def _started(folder: SweepFolder, run: Run) -> _Worker:
    return _Worker(ChildProcess(partial(_run_case, folder=folder, run=run)))


def _run_case(case: SweepCase, folder: SweepFolder, run: Run) -> str:
    return run(case, folder)


@dataclass(frozen=True, slots=True)
class ArrayRequest:
    """What is requested from Slurm: at most `tasks` tasks of `minutes` each; empty texts leave Slurm's defaults."""

    tasks: int
    minutes: int
    partition: str = ""
    account: str = ""
    cpus: int = 1
    kind: str = "slurm"
    """submitit's name of where tasks run; "local" runs them as processes of this host."""


def run_on_slurm(
    cases: Sequence[SweepCase], folder: SweepFolder, request: ArrayRequest, timeout_s: float, ended: Ended
) -> None:
    """Submit cases and wait for them; `ended` is called for each one with its error, "" for none.

    Raises GpuwasteError without submitit, SlurmError where Slurm rejects the array.
    """
    submitit = _library()
    logs = folder.path / "slurm"
    waiting = _submitted_before(submitit, cases, folder, request)
    known = {case.id for _, part in waiting for case in part}
    new = []
    for case in cases:
        if case.id in known:
            continue
        if folder.left((case,)):
            new.append(case)
        else:  # its task has ended since the cases were listed
            ended(case, "")
    if new:
        parts = [list(new[place :: request.tasks]) for place in range(min(request.tasks, len(new)))]
        waiting += zip(_submit(submitit, parts, folder, request, timeout_s), parts, strict=True)
        _note(folder, waiting)
    while waiting:
        waiting = [(job, left) for job, part in waiting if (left := _looked_at(job, part, folder, logs, ended))]
        if waiting:
            time.sleep(_ARRAY_LOOK_S)


def run_part(cases: Sequence[SweepCase], folder: SweepFolder, processes: int, timeout_s: float) -> None:
    """Run a task's part of the cases, on a node."""
    run_locally(cases, folder, processes, timeout_s, lambda _case, _error: None)


def _library() -> Any:
    try:
        import submitit  # noqa: PLC0415 only sweeps on Slurm need it
    except ModuleNotFoundError as error:
        raise GpuwasteError(
            "simulate sweep --as-job: no module submitit: install gpuwaste with its extra [sweep]"
        ) from error
    return submitit


def _submit(
    submitit: Any, parts: list[list[SweepCase]], folder: SweepFolder, request: ArrayRequest, timeout_s: float
) -> list[Any]:
    asked: dict[str, Any] = {"name": "gpuwaste-sweep", "timeout_min": request.minutes, "cpus_per_task": request.cpus}
    if request.partition:
        asked["slurm_partition"] = request.partition
    if request.account:
        asked["slurm_account"] = request.account
    try:
        executor = submitit.AutoExecutor(folder=folder.path / "slurm", cluster=request.kind)
        executor.update_parameters(**asked)
        n = len(parts)
        jobs: list[Any] = executor.map_array(run_part, parts, [folder] * n, [request.cpus] * n, [timeout_s] * n)
    except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
        reason = " ".join(str(error).split())[-500:]
        raise SlurmError(f"simulate sweep --as-job: Slurm rejected the job array: {reason}") from error
    return jobs


def _looked_at(job: Any, part: Sequence[SweepCase], folder: SweepFolder, logs: Path, ended: Ended) -> list[SweepCase]:
    """Report the cases that have ended; returns those that have not."""
    over = job.done()  # queried before the files are read, which are written before a task is over
    left = []
    for case in part:
        found = folder.result_of(case)
        if found is None and over:
            found = {"error": f"Slurm job {job.job_id} ended without a result: see its log in {logs}"}
            folder.keep(case, **found)
        if found is None:
            left.append(case)
        else:
            ended(case, str(found.get("error", "")))
    return left


def _note(folder: SweepFolder, waiting: Sequence[tuple[Any, Sequence[SweepCase]]]) -> None:
    noted = [{"job": str(job.job_id), "cases": [case.id for case in part]} for job, part in waiting]
    write_whole(folder.path / NOTED, json.dumps(noted).encode())


def _submitted_before(
    submitit: Any, cases: Sequence[SweepCase], folder: SweepFolder, request: ArrayRequest
) -> list[tuple[Any, list[SweepCase]]]:
    """Return the tasks of an earlier sweep that are not over, with those of `cases` that are theirs."""
    if request.kind != "slurm":  # processes of a host end with the sweep that started them
        return []
    try:
        noted = json.loads((folder.path / NOTED).read_bytes())
        tasks = [(str(each["job"]), set(each["cases"])) for each in noted]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    found = []
    for name, ids in tasks:
        part = [case for case in cases if case.id in ids]
        job = submitit.SlurmJob(folder=folder.path / "slurm", job_id=name)
        if part and not job.done(force_check=True):
            for case in part:
                if "error" in (folder.result_of(case) or {}):  # of an earlier task: it would be taken for this one's
                    folder.file_of(case).unlink(missing_ok=True)
            found.append((job, part))
    return found

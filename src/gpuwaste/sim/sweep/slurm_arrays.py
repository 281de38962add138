"""Cases as a job array of the site's own Slurm, through submitit; the directory has to be shared with the nodes.

A task of the array runs its part of the cases as a sweep on one host does, in a process of its own, and keeps each as
it ends. What was submitted is noted, so that a sweep that was interrupted waits for its tasks instead of submitting
again.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError, SlurmError
from gpuwaste.core.files import write_whole
from gpuwaste.sim.sweep.local import Ended, run_locally
from gpuwaste.sim.sweep.results import SweepFolder
from gpuwaste.sim.sweep.study import SweepCase

NOTED: Final = "submitted.json"
_LOOK_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class ArrayRequest:
    """What is asked of Slurm: at most `tasks` tasks of `minutes` each; empty texts leave Slurm's defaults."""

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
    """Submit cases and wait for them; `ended` is told each one with its error, "" for none.

    Raises GpuwasteError without submitit, SlurmError where Slurm does not take the array.
    """
    submitit = _library()
    logs = folder.path / "slurm"
    waiting = _submitted_before(submitit, cases, folder, request)
    known = {case.id for _, part in waiting for case in part}
    new = [case for case in cases if case.id not in known]
    if new:
        parts = [list(new[place :: request.tasks]) for place in range(min(request.tasks, len(new)))]
        waiting += zip(_submit(submitit, parts, folder, request, timeout_s), parts, strict=True)
        _note(folder, waiting)
    while waiting:
        waiting = [(job, left) for job, part in waiting if (left := _looked_at(job, part, folder, logs, ended))]
        if waiting:
            time.sleep(_LOOK_S)


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
        raise SlurmError(f"simulate sweep --as-job: Slurm did not take the job array: {reason}") from error
    return jobs


def _looked_at(job: Any, part: Sequence[SweepCase], folder: SweepFolder, logs: Path, ended: Ended) -> list[SweepCase]:
    """Tell of the cases that have ended; returns those that have not."""
    over = job.done()  # asked before the files, which are written before a task is over
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
                if "error" in (folder.result_of(case) or {}):  # of before: it would pass for this task's
                    folder.file_of(case).unlink(missing_ok=True)
            found.append((job, part))
    return found

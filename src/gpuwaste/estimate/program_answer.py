"""What is expected of a job of a known program: run time by the estimator that speaks, memory by file and own runs."""

import re
from collections.abc import Sequence
from typing import Final

from gpuwaste.core.program_estimate import ProgramEstimate, ProgramRun
from gpuwaste.core.program_tie import ProgramTie
from gpuwaste.estimate.devices import GIB, find, mig_memory_b
from gpuwaste.estimate.hybrid import Job, RunTime, Times, same_gpu, spoken
from gpuwaste.estimate.memory import MemoryEstimate

_MIG: Final = re.compile(r"(?:(.{1,60})[_.:-])?([1-7]g\.(\d{1,3})gb(?:\+me)?)", re.ASCII | re.IGNORECASE)
_FLAT: Final = (0.73, 0.77)
"""Share of a GPU's memory that JAX takes at its start: a use inside of it says nothing of the need."""


def program_estimate(
    tie: ProgramTie,
    job: Job,
    runs: Sequence[ProgramRun],
    *,
    memory: MemoryEstimate | None = None,
    times: Times | None = None,
    history: RunTime | None = None,
) -> ProgramEstimate:
    """Return what is expected; `memory` and `times` are None where the program's file is not here."""
    found = spoken(job, runs, times, history)
    time, refused = found.time, found.refused
    need, need_basis = _need(memory, runs)
    capacity_b = capacity_of(job.gpu_type)
    ran = any(run.gpus == job.gpus and same_gpu(run.gpu_type, job.gpu_type) for run in runs) if job.gpu_type else False
    fits = "fits" if ran else _fits(need, capacity_b, job.gpus)
    if ran:
        need_basis = [*need_basis, "an own run completed on such GPUs"]
    return ProgramEstimate(
        program=tie.program,
        steps=job.steps,
        gpu=job.gpu_type,
        gpus=job.gpus,
        estimator=time.estimator if time else "",
        step_s=time.step_s if time else None,
        run_s=time.run_s if time else None,
        run_low_s=time.low_s if time else None,
        run_high_s=time.high_s if time else None,
        coverage=time.coverage if time else None,
        runs=time.runs if time else 0,
        memory_b=None if memory is None or need[1] is None else min(memory.memory_b, need[1]),
        memory_low_b=need[0],
        memory_high_b=need[1],
        capacity_b=capacity_b,
        fits=fits,
        basis="; ".join([*([time.basis] if time and time.basis else []), *need_basis]),
        refused=refused,
        errors=list(found.errors),
    )


def capacity_of(gpu_type: str) -> int | None:
    """Return bytes that one GPU, or one MIG instance, of a type that Slurm names offers; None where it is not known.

    Of an instance whose GPU is not named it is the number in its name, which is never less than what it offers.
    """
    device = find(gpu_type)
    if device is not None:
        return device.memory_b
    instance = _MIG.fullmatch(gpu_type.strip())
    if instance is None:
        return None
    owner = find(instance[1] or "")
    sizes = owner.mig if owner else []
    known = next((size for size in sizes if size.name.lower() == instance[2].lower()), None)
    return mig_memory_b(owner, known) if owner and known else int(instance[3]) * GIB


def _need(memory: MemoryEstimate | None, runs: Sequence[ProgramRun]) -> tuple[tuple[int | None, int | None], list[str]]:
    """Return the range of the need: of the file, and no more than what own runs used at most."""
    seen = [
        run.gpu_mem_max_b
        for run in runs
        if run.gpu_mem_max_b
        and run.gpu_mem_total_b
        and not _FLAT[0] <= run.gpu_mem_max_b / run.gpu_mem_total_b <= _FLAT[1]
    ]
    basis = [memory.basis] if memory else []
    low, high = (memory.low_b, memory.high_b) if memory else (None, None)
    if not seen:
        return (low, high), basis
    most = max(seen)
    basis.append(f"most GPU memory that {len(seen)} own run{'s' if len(seen) > 1 else ''} used")
    return (None if low is None else min(low, most), most if high is None else min(high, most)), basis


def _fits(need: tuple[int | None, int | None], capacity_b: int | None, gpus: int) -> str:
    """Return the verdict; on several GPUs a program may be divided, so that only the lower end of all of it counts."""
    low, high = need
    if capacity_b is None or high is None or not gpus:
        return ""
    if high <= capacity_b:
        return "fits"
    if low is None:
        return ""
    if low > capacity_b * gpus:
        return "does not fit"
    if gpus > 1:
        return "must be sharded" if low > capacity_b else "may have to be sharded"
    return "too close to tell"

"""The estimate for a job of a known program: run time by the chosen estimator, memory by file and own runs."""

import re
from collections.abc import Sequence
from typing import Final

from gpuwaste.core.units import format_size
from gpuwaste.estimate.hybrid import EstimatedJob, EstimatedRunTime, Times, same_gpu, spoken
from gpuwaste.estimate.program_memory import MemoryEstimate, preallocated
from gpuwaste.jobs.program_estimate import ProgramEstimate, ProgramRun
from gpuwaste.slurm.gpu_types import GIB, mig_memory_b, types_of
from gpuwaste.slurm.submit.program_tie import ProgramTie

_MIG: Final = re.compile(r"(?:(.{1,60})[_.:-])?([1-7]g\.(\d{1,3})gb(?:\+me)?)", re.ASCII | re.IGNORECASE)
_Need = tuple[int | None, int | None]
"""Lower and upper end of the bytes that a program needs; None: unknown."""


def program_estimate(
    tie: ProgramTie,
    job: EstimatedJob,
    runs: Sequence[ProgramRun],
    *,
    memory: MemoryEstimate | None = None,
    times: Times | None = None,
    history: EstimatedRunTime | None = None,
) -> ProgramEstimate:
    """Return the estimate; `memory` and `times` are None where the program's file is missing here."""
    found = spoken(job, runs, times, history)
    time, refused = found.time, found.refused
    need, need_basis = _need(memory, runs)
    capacities = capacities_of(job.gpu_type)
    ran = any(run.gpus == job.gpus and same_gpu(run.gpu_type, job.gpu_type) for run in runs) if job.gpu_type else False
    fits, capacity_b = _on_all(need, capacities, job.gpus)
    if ran:
        fits = "fits"
        need_basis = [*need_basis, "one of your runs completed on such GPUs"]
    elif len(capacities) > 1 and not fits and need[1] is not None:
        need_basis = [*need_basis, f"{job.gpu_type} can be {_each(need, capacities, job.gpus)}"]
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


def capacities_of(gpu_type: str) -> list[tuple[str, int]]:
    """Return the types that a name of Slurm may mean, with the bytes that one GPU, or one MIG instance, of each offers.

    For an instance whose GPU is not named it is the number in its name, which is never less than what it offers. Empty:
    unknown.
    """
    if types := types_of(gpu_type):
        return [(each.name, each.memory_b) for each in types]
    instance = _MIG.fullmatch(gpu_type.strip())
    if instance is None:
        return []
    name = instance[2].lower()
    known = [
        (f"{owner.name} {name}", mig_memory_b(owner, size))
        for owner in types_of(instance[1] or "")
        for size in owner.mig
        if size.name.lower() == name
    ]
    return known or [(gpu_type, int(instance[3]) * GIB)]


def _on_all(need: _Need, capacities: Sequence[tuple[str, int]], gpus: int) -> tuple[str, int | None]:
    """Return the verdict on which all types agree, with the memory that decides it; ("", None) if they do not."""
    if not capacities:
        return "", None
    low, high = (pick(capacity for _, capacity in capacities) for pick in (min, max))
    verdicts = {_fits(need, capacity, gpus) for capacity in (low, high)}
    if len(verdicts) > 1 or (low != high and not any(verdicts)):
        return "", None
    (verdict,) = verdicts
    return verdict, low if verdict in {"fits", ""} else high


def _each(need: _Need, capacities: Sequence[tuple[str, int]], gpus: int) -> str:
    """Return a text of each type, its memory and its verdict: a100-40gb (39.4 GiB: does not fit) or ..."""
    found = ((name, format_size(capacity), _fits(need, capacity, gpus)) for name, capacity in capacities)
    return " or ".join(f"{name} ({size}: {verdict or 'not known'})" for name, size, verdict in found)


def _need(memory: MemoryEstimate | None, runs: Sequence[ProgramRun]) -> tuple[_Need, list[str]]:
    """Return the range of the need: from the file, and no more than the most that own runs used."""
    seen = [
        run.gpu_mem_max_b
        for run in runs
        if run.gpu_mem_max_b and not preallocated(run.gpu_mem_max_b, run.gpu_mem_total_b)
    ]
    basis = [memory.basis] if memory else []
    low, high = (memory.low_b, memory.high_b) if memory else (None, None)
    if not seen:
        return (low, high), basis
    most = max(seen)
    basis.append(f"the most GPU memory of your {len(seen)} earlier run{'s' if len(seen) > 1 else ''}")
    return (None if low is None else min(low, most), most if high is None else min(high, most)), basis


def _fits(need: _Need, capacity_b: int, gpus: int) -> str:
    """Return the verdict; on several GPUs a program may be divided, so only the lower end of the total counts."""
    low, high = need
    if high is None or not gpus:
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

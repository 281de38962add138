"""AccountedUse: what accounting itself has of the use of a run's GPUs, by jobstats or by Slurm. Means, never hours.

jobstats (its text in AdminComment, jobstats_comment.py) has the mean utilization and the largest memory of each GPU.

Slurm (gres/gpuutil and gres/gpumem, where AccountingStorageTRES has gres/gpu) has no mean: TRESUsageInTot and
TRESUsageInAve hold one of a task's readings (the last one by common_jag.c, the largest one on a live 24.11),
TRESUsageInMax the largest of any task. A reading adds up a task's GPUs, so that it can exceed 100 %, but leaves out a
GPU whose sample is not newer than that of the GPU before, and NVML errors leave it at 0 (gpu_nvml.c, _get_gpuutil): a
peak of 0 is a hint that the GPUs were not used, and no proof.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from msgspec import Meta

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import parse_size_b

Source = Literal["jobstats", "slurm"]
UTIL: Final = "gres/gpuutil"
MEMORY: Final = "gres/gpumem"
_PEAK: Final = {name: re.compile(rf"(?:^|,){name}=([^,]{{0,40}})") for name in (UTIL, MEMORY)}
_EXTERN: Final = "extern"  # holds what prolog and ssh start: often no process at all
_MOST: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class AccountedUse:
    """The use of one GPU of a run, or with an empty `gpu` of all its GPUs on `node`, or anywhere; None: not known."""

    source: Source
    node: Annotated[str, Meta(description="Empty: of the whole run.")] = ""
    gpu: Annotated[str, Meta(description="The GPU's number on its node; empty: all together.")] = ""
    mean_pct: Annotated[float | None, Meta(description="Mean utilization over the run, percent.")] = None
    peak_pct: Annotated[
        float | None, Meta(description="Largest reading, percent; of Slurm of one or several GPUs of a task together.")
    ] = None
    gpu_mem_max_b: Annotated[int | None, Meta(description="Largest GPU memory in use; of Slurm by one task.")] = None
    gpu_mem_total_b: Annotated[int | None, Meta(description="The GPU's memory.")] = None
    cpus: Annotated[int | None, Meta(description="CPUs of the run on the node; the same for each of its GPUs.")] = None
    cpu_s: Annotated[float | None, Meta(description="CPU seconds used on the node.")] = None
    mem_max_b: Annotated[int | None, Meta(description="Largest memory in use on the node.")] = None
    mem_total_b: Annotated[int | None, Meta(description="Memory of the run on the node.")] = None


class StepPeaks:
    """The largest readings over a run's steps; constant memory for any number of steps."""

    def __init__(self) -> None:
        self._util: int | None = None
        self._memory: int | None = None
        self._unread = False
        self._numbered = 0
        self._last = -1

    def add(self, step: str, util_pct: int | None, memory_b: int | None) -> None:
        """Add a step with its readings, None where it has none."""
        self._util = _larger(self._util, util_pct)
        self._memory = _larger(self._memory, memory_b)
        self._unread |= step != _EXTERN and (util_pct is None or memory_b is None)
        number = step.partition("+")[0]
        if number.isdigit() and len(number) <= 10:  # noqa: PLR2004 a step's number has 32 bits
            self._numbered += "+" not in step
            self._last = max(self._last, int(number))

    def use(self) -> tuple[AccountedUse, ...]:
        """Return the run's use, nothing where no step was read.

        Zeros count only where every step is listed and was read: sacct leaves out steps that ended before its window.
        """
        if self._util is None and self._memory is None:
            return ()
        some = self._unread or self._numbered != self._last + 1
        util, memory = (None if some and not peak else peak for peak in (self._util, self._memory))
        if util is None and memory is None:
            return ()
        return (AccountedUse("slurm", peak_pct=None if util is None else float(util), gpu_mem_max_b=memory),)


def _larger(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def peak_of(tres: str, name: str) -> int | None:
    """Return the amount of UTIL or MEMORY in a step's TRESUsageInMax, None where it is absent. Raises ParseError."""
    found = _PEAK[name].search(tres)
    if found is None:
        return None
    value = parse_size_b(found[1])
    if value >= _MOST:
        raise ParseError(f"{name}: {value:.3g} is larger than any number of Slurm")
    return value

"""The use of GPUs as accounting itself has it: jobstats' means, and the largest readings of Slurm (gres/gpuutil)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from gpuwaste.core.units import HOUR_S, say_hours, say_percent
from gpuwaste.views.view_query import ViewQuery


@dataclass(frozen=True, slots=True)
class UseInAccounting:
    """Sums over the runs that ended; see query look_use. Times are GPU-seconds."""

    told_s: int = 0
    used_s: float = 0.0
    zero_gpus: int = 0
    zero_s: int = 0
    one_of_many: int = 0
    others_s: int = 0
    peak_runs: int = 0
    peak_s: int = 0
    flat_runs: int = 0
    flat_s: int = 0

    @classmethod
    def of(cls, asking: ViewQuery) -> Self:
        """Query the sums. Raises StoreError."""
        return cls(**asking.rows("look_use")[0])

    def sentences(self, held_s: int) -> Iterator[str]:
        """Yield what is known of the use of the `held_s` GPU-seconds that jobs held."""
        if not self.told_s and not self.peak_s:
            yield "Accounting records no use of GPUs (neither jobstats' summaries nor gres/gpuutil)."
        if self.told_s:
            known = f"Accounting has the utilization of {_of(self.told_s, held_s)} that jobs held (jobstats)"
            yield f"{known}: {say_percent(self.used_s / self.told_s)} on average."
        if self.zero_gpus:
            yield f"{_several(self.zero_gpus, 'GPU')} of jobs had 0 % at every reading: {_hours(self.zero_s)}."
        if self.one_of_many:
            jobs = _several(self.one_of_many, "job")
            yield f"{jobs} with several GPUs used one of them; the others were allocated for {_hours(self.others_s)}."
        if self.peak_s:
            rest = " more" if self.told_s else ""
            yield f"Of {_of(self.peak_s, held_s)}{rest} accounting has the largest reading only (gres/gpuutil)."
        if self.flat_runs:
            jobs = f"{self.flat_runs:,} of these {_several(self.peak_runs, 'job')} ({_hours(self.flat_s)})"
            yield f"In {jobs} it is 0 %: they may not have used their GPUs; a reading that failed is 0 as well."

    def unknown(self, held_s: int) -> str:
        """Return what is not known of the GPU-seconds that jobs held."""
        if not self.told_s:
            return "Accounting does not record how much of that was idle."
        rest_s = max(0, held_s - self.told_s)
        rest = f"Of {_hours(rest_s)} no utilization is known, and of " if rest_s else "Of "
        return f"{rest}{_hours(self.told_s)} only the mean: when their GPUs were idle, and why, is not known."


def _of(part_s: int, held_s: int) -> str:
    share = f" ({say_percent(min(1.0, part_s / held_s))})" if held_s else ""
    return f"{_hours(part_s)}{share}"


def _hours(gpu_s: float) -> str:
    return f"{say_hours(gpu_s / HOUR_S)} GPU-hours"


def _several(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

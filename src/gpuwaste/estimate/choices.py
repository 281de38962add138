"""Possible requests for a program: GPU types, numbers of GPUs and batch sizes compared, one marked by a goal.

The time of a row is that of its GPUs: one, or several as estimate/several_gpus.py has it. Several GPUs have a time
where the program fits on one of them, or as a pipeline; what must be sharded otherwise has memory but no time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from msgspec.structs import replace

from gpuwaste.core.units import HOUR_S
from gpuwaste.estimate.estimate_types import EstimateChoice, StepTime
from gpuwaste.estimate.program_memory import MemoryEstimate, verdict
from gpuwaste.slurm.gpu_types import GpuType, MigSize, mig_memory_b

ChoiceGoal = Literal["cheapest", "fastest", "smallest"]
SHARDED: Final = "the program may not fit on one GPU: sharded training is not estimated, a pipeline is (--pipeline)"
FITS_ON_ONE: Final = "fits on one"
ON_MIG: Final = "times on MIG instances are not estimated"


@dataclass(frozen=True, slots=True)
class Work:
    """The length of the run: steps, or samples that each batch size divides into steps; neither if not given."""

    steps: int | None = None
    samples: int | None = None

    def steps_of(self, batch: int | None, copies: int = 1) -> int | None:
        """Return the steps of a run at a batch size, None where they are unknown.

        Each copy of the program computes a batch in a step: `steps` are those of one, copies share the same work.
        """
        if self.samples is not None and batch is not None:
            return ceil(self.samples / (batch * copies))
        return None if self.steps is None else ceil(self.steps / copies)


def choice(
    memory: MemoryEstimate,
    on: GpuType,
    time: StepTime,
    *,
    gpus: int = 1,
    pipeline: bool = False,
    mig: MigSize | None = None,
    file: str = "",
    batch: int | None = None,
    work: Work,
    price: float | None = None,
) -> EstimateChoice:
    """Return one row; `time` is that of its GPUs, copies of the program or a pipeline, `price` that of a GPU-hour."""
    capacity_b = on.memory_b if mig is None else mig_memory_b(on, mig)
    found = EstimateChoice(
        gpu=on.name, mig="" if mig is None else mig.name, gpus=gpus, file=file, batch=batch, memory_b=memory.memory_b,
        memory_low_b=memory.low_b, memory_high_b=memory.high_b, capacity_b=capacity_b,
        fits=_fits(memory, capacity_b, gpus), steps=work.steps_of(batch),
    )  # fmt: skip
    if mig is not None:
        return replace(found, refused=ON_MIG)
    if time.step_s is None:
        return replace(found, refused=time.refused)
    if gpus > 1 and found.fits != FITS_ON_ONE and (not pipeline or found.fits == "does not fit"):
        return replace(found, refused=SHARDED)
    copies = 1 if pipeline else gpus
    found = replace(
        found, copies=copies, steps=work.steps_of(batch, copies), step_s=time.step_s, step_low_s=time.low_s,
        step_high_s=time.high_s, basis=time.basis,
    )  # fmt: skip
    if found.steps is None:
        return found
    hours = time.step_s * found.steps * gpus / HOUR_S
    return replace(
        found,
        run_s=time.step_s * found.steps,
        run_high_s=None if time.high_s is None else time.high_s * found.steps,
        gpu_hours=hours,
        cost=None if price is None else hours * price,
    )


def _fits(memory: MemoryEstimate, capacity_b: int, gpus: int) -> str:
    one = verdict(memory, capacity_b)
    if gpus == 1:
        return one
    if one == "fits":
        return FITS_ON_ONE
    if memory.low_b > capacity_b * gpus:
        return "does not fit"
    return "must be sharded" if one == "does not fit" else "may have to be sharded"


def chosen(
    rows: Sequence[EstimateChoice], goal: ChoiceGoal, prices: Mapping[str, float]
) -> tuple[int | None, list[str]]:
    """Return the place of the row that the goal marks, None where there is none, and notes about it."""
    if goal == "smallest":
        return _smallest(rows)
    places = [place for place, row in enumerate(rows) if _certain(row) and row.step_s is not None]
    if not places:
        return None, [_no_time(rows, goal)]
    notes = []
    if goal == "cheapest" and prices:
        without = sorted({rows[place].gpu for place in places} - prices.keys())
        places = [place for place in places if rows[place].gpu in prices]
        if without:
            notes.append(f"no price for {', '.join(without)}: not compared")
        if not places:
            return None, [*notes, "no GPU type has both a price and a time"]
    elif goal == "cheapest":
        notes.append("no prices (--price TYPE=N, or [estimate] prices of the site): cheapest is the fewest GPU-hours")
    rates = {place: _rate(rows[place], goal, prices) for place in places}
    best = min(places, key=lambda place: rates[place])
    near = sum(1 for place in places if place != best and _overlaps(rows, best, place, rates))
    if near:
        notes.append(f"not certainly better than {near} other choices: their 90 % intervals overlap with its interval")
    return best, notes


def _certain(row: EstimateChoice) -> bool:
    return row.fits in {"fits", FITS_ON_ONE}


def _rate(row: EstimateChoice, goal: ChoiceGoal, prices: Mapping[str, float]) -> float:
    """Return the value that the goal compares: of the run if its length is known, else of a sample, else of a step."""
    seconds = row.run_s if row.run_s is not None else (row.step_s or 0.0) / ((row.batch or 1) * row.copies)
    return seconds * (prices.get(row.gpu, 1.0) * row.gpus if goal == "cheapest" else 1.0)


def _overlaps(rows: Sequence[EstimateChoice], best: int, other: int, rates: Mapping[int, float]) -> bool:
    high, low = rows[best], rows[other]
    if high.step_high_s is None or low.step_low_s is None or not high.step_s or not low.step_s:
        return False
    return rates[other] * low.step_low_s / low.step_s <= rates[best] * high.step_high_s / high.step_s


def _smallest(rows: Sequence[EstimateChoice]) -> tuple[int | None, list[str]]:
    """Return the row with the least GPU memory on which the program fits; of equals, the largest batch."""
    places = [place for place, row in enumerate(rows) if row.fits == "fits"]
    notes = []
    if not places:
        places = [place for place, row in enumerate(rows) if row.fits == "must be sharded"]
        notes = ["fits on no single GPU: it fits on the chosen GPUs only if sharded evenly"]
    if not places:
        return None, ["the program is not certain to fit on any choice: use a smaller batch or more GPUs"]
    return min(places, key=lambda place: (rows[place].gpus * rows[place].capacity_b, -(rows[place].batch or 0))), notes


def _no_time(rows: Sequence[EstimateChoice], goal: ChoiceGoal) -> str:
    if all(row.step_s is None for row in rows):
        reasons = sorted({row.refused for row in rows if row.gpus == 1 and not row.mig})
        reasons = reasons or sorted({row.refused for row in rows})
        return f"{goal}: no choice has a time ({reasons[0]}); --goal smallest needs only memory"
    return f"{goal}: the program is not certain to fit on any GPU type that has a time"

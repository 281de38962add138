"""The time of a step by the model with the smaller measured error: the site's own, or the public one.

A type that the site has measured is answered by its own model, unless the public model with the site's factors was
better on the same programs. Types that it has not measured, programs unlike all measured ones, and hosts of a site that
has measured nothing are answered by the public model, with the factors of a measured type of the family.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.program import Program, op_sums
from gpuwaste.estimate.public.operators import work_of
from gpuwaste.estimate.public.public_answer import public_time
from gpuwaste.estimate.public.site_shift import Factors, factors_for
from gpuwaste.estimate.step_time import step_time
from gpuwaste.estimate.time_model import FitSupport, TimeModel
from gpuwaste.slurm.gpu_types import find, types_of


class BestTimes:
    """The times of one program; `models` are a site's, by the table's names of types."""

    def __init__(self, program: Program, models: Mapping[str, TimeModel], family: str = "") -> None:
        self._program, self._models, self._family = program, models, family
        self._sums, self._work = op_sums(program), work_of(program)

    def on(self, gpu: str) -> StepTime:
        """Return the time of one step on a type of GPU, or why there is none.

        Of a name that may be several types it is that of the slowest, with the interval of all.
        """
        several = [] if find(gpu) or gpu in self._models else types_of(gpu)
        return _of_several(gpu, [self._on(each.name) for each in several]) if several else self._on(gpu)

    def _on(self, gpu: str) -> StepTime:
        public = self._public(gpu)
        if not self._models:
            return public
        trips = self._program.unknown_trips
        own = step_time(self._models, self._sums, gpu, family=self._family, unknown_trips=trips)
        if own.step_s is None:
            return own if public.step_s is None else _with_reason(public, own)
        if public.step_s is None:
            return own
        model = self._models.get(own.gpu)
        return public if model is None or not model.grounds.programs or _public_is_better(model.grounds) else own

    def _public(self, gpu: str) -> StepTime:
        device = find(gpu)
        measured: dict[str, Factors] = {
            name: model.grounds.public_factors for name, model in self._models.items() if model.grounds.public_factors
        }
        factors, source = ({}, "") if device is None else factors_for(device, measured)
        return public_time(self._program, self._work, gpu, factors=factors, corrected_by=source)


def _public_is_better(grounds: FitSupport) -> bool:
    """Return whether the public model was better on programs that neither model had seen."""
    return (
        grounds.public_error is not None and grounds.own_error is not None and grounds.public_error < grounds.own_error
    )


def _of_several(name: str, times: Sequence[StepTime]) -> StepTime:
    known = [each for each in times if each.step_s is not None]
    if len(known) < len(times):
        refused = next(each.refused for each in times if each.step_s is None)
        return StepTime(gpu=name, refused=refused)
    slowest = max(known, key=lambda each: each.step_s or 0.0)
    low_s, high_s = min(each.low_s or 0.0 for each in known), max(each.high_s or 0.0 for each in known)
    basis = f"{slowest.basis} (the slowest that {name} may be)"
    return replace(slowest, gpu=name, low_s=low_s, high_s=high_s, basis=basis)


def _with_reason(public: StepTime, own: StepTime) -> StepTime:
    return replace(public, notes=(*public.notes, f"this site's own model gives no time: {own.refused}"))

"""The time of a step on one type of GPU: the roofline, times the correction by the Gaussian process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from gpuwaste.estimate.gaussian_process import ResidualGp, features_of, mix_overlap
from gpuwaste.estimate.program import OpSum
from gpuwaste.estimate.public.coefficients import Part
from gpuwaste.estimate.roofline import Floats, Roofline, between, work_of
from gpuwaste.slurm.gpu_types import GpuType

SCALED_SD: Final = 0.15
"""Standard deviation that scaling by data sheets adds to the logarithm of time: 3090 to 4090 gave 0.12."""

FEW: Final = 3
"""Up to this number of measured programs an interval treats a family as hardly measured."""


@dataclass(frozen=True, slots=True)
class FitSupport:
    """The basis of a model, and the values for its intervals and refusals."""

    gpu: str
    programs: int  # measured on this type
    families: int
    shortest_s: float  # of the measured steps
    longest_s: float
    least_nearness: float  # a program with less nearness to all measured ones is refused
    new_z: float  # half width of the 90 % interval in standard deviations, if no program of its family was measured
    few_z: float  # the same, if up to FEW were
    known_z: float  # the same, if more were
    widened: float = 1.0  # by the site's own runs, at least 1
    runs: int = 0  # own runs among the programs
    scaled_from: str = ""  # the type whose model was scaled to this one
    hardware: str = ""  # the GPU's name, driver, framework and clock as measured
    contexts_b: tuple[int, int, int] | None = (
        None  # least, median and most of what processes needed besides their arrays
    )
    own_error: float | None = None  # mean relative error on families that were left out; None: not judged
    public_error: float | None = None  # of the public model with the factors, on programs left out of these
    public_factors: dict[Part, float] = field(default_factory=dict)  # measured over public time, by part of a step

    @property
    def basis(self) -> str:
        """The basis of the estimate, as a text."""
        if self.scaled_from and not self.programs:
            return f"scaled from {self.scaled_from} by data sheets; nothing was measured on {self.gpu}"
        own = f", {self.runs} of them runs of users" if self.runs else ""
        measured = f"{self.programs} programs measured on {self.gpu}{own}"
        return f"scaled from {self.scaled_from}, corrected by {measured}" if self.scaled_from else measured


@dataclass(frozen=True, slots=True)
class StepSeconds:
    """A step's time with its 90 % interval, seconds."""

    step_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True)
class TimeModel:
    """The model of one type of GPU. `base` is the roofline for the features: that of the type it was scaled from."""

    grounds: FitSupport
    roofline: Roofline
    base: Roofline
    gp: ResidualGp
    correction: ResidualGp | None = None  # of a scaled model, by the programs measured on this type

    @property
    def measured(self) -> frozenset[str]:
        """Kinds with element types in enough measured programs; others have no coefficient."""
        return frozenset(self.base.keys)

    def predict(self, programs: Sequence[Mapping[str, OpSum]], families: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the natural logarithm of seconds and its standard deviation, by program; unknown keys count 0."""
        work = work_of(programs, self.base.keys)
        features = features_of(self.base, work)
        mean, sd = self.gp.predict(features, families)
        if self.correction is not None:
            correction, more = self.correction.predict(features, families)
            mean, sd = mean + correction, np.hypot(sd, more)
        if self.grounds.scaled_from and not self.grounds.programs:
            sd = np.hypot(sd, SCALED_SD)
        seconds = self.roofline.seconds(work_of(programs, self.roofline.keys))
        return np.log(np.maximum(seconds, 1e-12)) + mean, sd

    def nearness(self, programs: Sequence[Mapping[str, OpSum]]) -> Floats:
        """Return the overlap with the op mix of the nearest measured program, by program: 1 the same, 0 none."""
        features = features_of(self.base, work_of(programs, self.base.keys))
        found: Floats = mix_overlap(features, self.gp.features).max(axis=1, initial=0.0)
        return found

    def z(self, family: str) -> float:
        """Return the half width of the 90 % interval in standard deviations."""
        of_family = self.gp.families.count(family) if family else 0
        grounds = self.grounds
        z = grounds.known_z if of_family > FEW else grounds.few_z if of_family else grounds.new_z
        return z * grounds.widened

    def interval(self, log_s: float, sd: float, family: str) -> StepSeconds:
        """Return the seconds from the result of `predict`."""
        reach = self.z(family) * sd
        return StepSeconds(*(float(np.exp(log_s + by)) for by in (0.0, -reach, reach)))

    def scaled(self, source: GpuType, target: GpuType) -> "TimeModel":
        """Return the model of a type on which nothing was measured, by the table of devices."""
        grounds = replace(
            self.grounds,
            gpu=target.name,
            programs=0,
            runs=0,
            scaled_from=self.grounds.gpu,
            hardware="",
            own_error=None,
            public_error=None,
            public_factors={},
        )
        return replace(self, grounds=grounds, roofline=self.roofline.scaled(*between(source, target)))

"""A bundle of waits: its trees, which predict quantiles of a wait from features, its partitions, and its card.

The trees learn the square root of the wait plus a minute: from the logarithm they learn little about long waits, from
seconds little about short ones. The card (card.json) is also the output of `gpuwaste model train --waits --json`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from gpuwaste.advice.predict.bundle import RETRAIN, Bundle, load_bundle
from gpuwaste.advice.predict.manifest import read_bundle
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ModelError
from gpuwaste.core.fields import Document, Ratio, Utc
from gpuwaste.plan.start_time.start_expectation import QUANTILES
from gpuwaste.plan.start_time.wait_correction import FLOOR_S
from gpuwaste.plan.wait_features import TARGET, wait_features

MACHINE: Final = "machine.json"
SHIFTS: Final = "shifts.json"
_MAX_SHIFTS: Final = 10_000
Floats = NDArray[np.float64]


class PoolSize(Struct, frozen=True):
    """One partition as it was learnt from: the most processors and GPUs that its jobs held at once."""

    name: str
    procs: int
    gpus: int


class WaitMachine(Struct, frozen=True):
    """The partitions in the order of their numbers, and the simulations behind each row of features."""

    pools: list[PoolSize]
    draws: int


def raw_of(waits_s: Floats) -> Floats:
    """Return waits in seconds in the scale of the trees."""
    found: Floats = np.sqrt(np.maximum(waits_s, 0.0) + FLOOR_S)
    return found


def seconds_of(raw: Floats) -> Floats:
    """Return the trees' output [n, q] in seconds, not negative, never falling with q."""
    found: Floats = np.maximum(np.square(np.maximum(np.maximum.accumulate(raw, axis=1), 0.0)) - FLOOR_S, 0.0)
    return found


@dataclass(frozen=True, slots=True)
class WaitTrees:
    """A loaded bundle of waits; `shifts` is the initial state of its correction (WaitShifts.pack)."""

    bundle: Bundle
    machine: WaitMachine
    shifts: Floats

    def waits_s(self, features: NDArray[np.float32]) -> Floats:
        """Return p10, p50 and p90 of the waits [n, 3] in seconds, not corrected."""
        return seconds_of(self.bundle.raw(TARGET, features).astype(np.float64))


def load_trees(directory: Path) -> WaitTrees:
    """Load and check a bundle of waits. Raises ModelError."""
    files = read_bundle(directory)
    bundle = load_bundle(directory, wait_features(), files)
    if bundle.model(TARGET).quantiles != QUANTILES:
        raise ModelError(f"{directory}: other quantiles than {QUANTILES}: {RETRAIN}")
    try:
        machine = convert(json.loads(files[1][MACHINE]), WaitMachine, MACHINE)
        shifts = np.array(json.loads(files[1][SHIFTS]), np.float64)
    except (KeyError, ValueError, RecursionError, TypeError) as error:
        raise ModelError(f"{directory}: {MACHINE} or {SHIFTS} is not there or broken: {error}: {RETRAIN}") from error
    if not machine.pools or machine.draws < 1 or len(shifts) > _MAX_SHIFTS:
        raise ModelError(f"{directory}: {MACHINE} or {SHIFTS} has impossible values: {RETRAIN}")
    return WaitTrees(bundle, machine, shifts)


class WaitFigures(Struct, kw_only=True, frozen=True):
    """How good one way to predict waits was on jobs that it had not seen."""

    method: str
    coverage: Annotated[Ratio, Meta(description="Share of the waits from p10 to p90; 0.8 is the target.")]
    below: Annotated[Ratio, Meta(description="Share of the waits below p10.")]
    above: Annotated[Ratio, Meta(description="Share of the waits above p90.")]
    pinball_s: Annotated[float, Meta(description="Mean pinball loss of p10, p50 and p90, in seconds.")]
    beside_best: Annotated[float, Meta(description="Loss compared with the best baseline, as a share: -0.25 is less.")]


class WaitCard(Document, kw_only=True, frozen=True):
    """Where a bundle of waits is from and how good its like was, judged in the order of time."""

    document: Literal["wait-card"] = "wait-card"
    name: str
    cluster: str
    source: str
    created_utc: Utc
    window: Annotated[tuple[int, int], Meta(description="First and last submission in the training data, UTC seconds.")]
    rows: Annotated[int, Meta(description="Jobs in the training data: those that started.")]
    judged: Annotated[int, Meta(description="Jobs on which the figures are based.")]
    draws: Annotated[int, Meta(description="Simulations of the queue at each submission.")]
    seconds: Annotated[Mapping[str, float], Meta(description="Duration of each stage of the training, seconds.")]
    promoted: Annotated[bool, Meta(description="Whether it was promoted at once.")]
    figures: list[WaitFigures]

"""The trees of a bundle of waits: quantiles of a wait from its features, in the unit in which the trees learn.

That unit is the square root of the wait plus a minute: of the logarithm, the trees learn little about long waits, of
seconds little about short ones.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuwaste.advice.predict.bundle import RETRAIN, Bundle, load_bundle
from gpuwaste.advice.predict.manifest import read_bundle
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ModelError
from gpuwaste.plan.start_time.correction import FLOOR_S
from gpuwaste.plan.start_time.expectation import QUANTILES
from gpuwaste.plan.waits.features import TARGET, wait_features

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
    """Return waits in seconds as the trees learn them."""
    found: Floats = np.sqrt(np.maximum(waits_s, 0.0) + FLOOR_S)
    return found


def seconds_of(raw: Floats) -> Floats:
    """Return what trees gave [n, q] in seconds, not negative, never falling with q."""
    found: Floats = np.maximum(np.square(np.maximum(np.maximum.accumulate(raw, axis=1), 0.0)) - FLOOR_S, 0.0)
    return found


@dataclass(frozen=True, slots=True)
class WaitTrees:
    """A loaded bundle of waits; `shifts` is what its correction begins with (WaitShifts.pack)."""

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
        raise ModelError(f"{directory}: {MACHINE} or {SHIFTS} has no values that can be: {RETRAIN}")
    return WaitTrees(bundle, machine, shifts)

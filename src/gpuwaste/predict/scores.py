"""From a model's raw output to what is said: calibrated probabilities, monotone quantiles that stay under the request."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.request import JobRequest
from gpuwaste.predict.manifest import Manifest, TargetModel

Floats = NDArray[np.float64]
_EPSILON: Final = 1e-6  # float32 outputs of 0 and 1 have a finite logit
_LARGEST_LOG: Final = 60.0  # e^60 is beyond any amount


class Model(Protocol):
    """What is asked of a bundle."""

    @property
    def manifest(self) -> Manifest:
        """What the bundle holds."""
        ...

    @property
    def hash(self) -> str:
        """The sha256 of the manifest."""
        ...

    def raw(self, target: str, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return [n, 1] probabilities before calibration, or [n, quantiles] logarithms."""
        ...


class Correction(Protocol):
    """What is asked of a rolling correction, which finished jobs keep up to date."""

    def calibrated(self, target: str, raw: Floats) -> Floats:
        """Return probabilities [n] of raw ones [n]."""
        ...

    def shifted(self, target: str, raw: Floats) -> Floats:
        """Return log quantiles [n, q] with their shifts."""
        ...


def probabilities(model: TargetModel, raw: NDArray[Any], rolling: Correction | None) -> Floats:
    """Return calibrated probabilities [n] of raw ones [n, 1]."""
    plain = raw[:, 0].astype(np.float64)
    if rolling is not None:
        return rolling.calibrated(model.target, plain)
    clipped = np.clip(plain, _EPSILON, 1 - _EPSILON)
    logit = np.log(clipped / (1 - clipped))
    result: Floats = 1 / (1 + np.exp(-(model.calibration.slope * logit + model.calibration.offset)))
    return result


def quantiles(
    model: TargetModel, raw: NDArray[Any], requests: Sequence[JobRequest], rolling: Correction | None
) -> Floats:
    """Return quantiles [n, q] in the target's unit, each row ascending and no larger than what is asked for."""
    logs = raw.astype(np.float64)
    shifted = rolling.shifted(model.target, logs) if rolling is not None else logs + np.array(model.shifts or [0.0])
    values = np.exp(np.minimum(np.maximum.accumulate(shifted, axis=1), _LARGEST_LOG))
    caps = np.array([cap(model.target, request) for request in requests])
    result: Floats = np.minimum(values, caps[:, None])
    return result


def cap(target: str, request: JobRequest) -> float:
    """Return what a quantity cannot exceed, infinite where nothing was asked for."""
    asked = {"walltime": request.time_limit_s, "memory": request.mem_b, "gpus_needed": request.gpus}.get(target)
    return float("inf") if asked is None else float(asked)


def applies(target: str, request: JobRequest) -> bool:
    """Tell whether a target says something of a request: GPUs are judged where there are some."""
    return request.gpus > 0 or target not in {"gpu_underused", "gpus_needed"}

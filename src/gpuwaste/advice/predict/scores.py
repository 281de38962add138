"""What is asked of a bundle, and what its numbers are bounded by."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.manifest import Manifest
from gpuwaste.advice.predict.targets import ASKED, OF_THE_LEDGER
from gpuwaste.slurm.submit.request import JobRequest


class ScoringModel(Protocol):
    """What is asked of a bundle; `predict.bundle.Bundle` is one."""

    @property
    def manifest(self) -> Manifest:
        """What the bundle holds."""
        ...

    @property
    def hash(self) -> str:
        """The sha256 of the manifest."""
        ...

    def raw(self, target: str, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return [n, 1] probabilities before calibration, or [n, quantiles] logarithms. Raises ModelError."""
        ...


def cap(target: str, request: JobRequest) -> float | None:
    """Return what a quantity cannot exceed, None where nothing was asked for: `request_cap` for one request."""
    asked: int | None = getattr(request, ASKED[target]) if target in ASKED else None
    return None if not asked else float(asked)


def applies(target: str, request: JobRequest) -> bool:
    """Tell whether a target says something of a request: GPUs are judged where there are some."""
    return request.gpus > 0 or target not in OF_THE_LEDGER

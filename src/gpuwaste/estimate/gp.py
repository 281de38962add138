"""A Gaussian process on what the roofline leaves: the logarithm of measured over computed time.

Two programs resemble each other by their op mix (Matern kernels over time_features, a wide and a narrow one) and by
their family: programs of one family share an offset and a kernel of their own. A site's own runs enter as a family.
Prediction needs numpy only; the numbers of the kernel are found by gpuwaste.models.times.fit_kernel.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.time_features import BLOCKS, distances

Floats = NDArray[np.float64]
_NUMBERS: Final = 7  # of a kernel besides the weights of blocks
KERNEL_SIZE: Final = _NUMBERS + len(BLOCKS)
_ROOT3: Final = float(np.sqrt(3.0))


@dataclass(frozen=True, slots=True)
class Kernel:
    """Variances and inverse lengths; `numbers` [KERNEL_SIZE] are their natural logarithms, the noise's last."""

    numbers: Floats

    @property
    def noise(self) -> float:
        """The variance of a measurement, of the logarithm of time."""
        return float(np.exp(self.numbers[-1]))

    @property
    def variance(self) -> float:
        """The variance of a program of which nothing is known, noise left out."""
        return float(np.exp(self.numbers[:4]).sum())

    def mix(self, apart: Floats) -> Floats:
        """Return the covariance by op mix of distances [blocks, n, m]."""
        wide, narrow, *_ = np.exp(self.numbers)
        r = self._reach(apart)
        found: Floats = wide * _matern(r) + narrow * _matern(r * float(np.exp(self.numbers[5])))
        return found

    def family(self, apart: Floats) -> Floats:
        """Return the covariance of programs of one family."""
        offset, local = np.exp(self.numbers[2:4])
        found: Floats = offset + local * _matern(self._reach(apart) * float(np.exp(self.numbers[4])))
        return found

    def covariance(self, apart: Floats, same: NDArray[np.bool_]) -> Floats:
        """Return the covariance, noise left out; `same` [n, m] says which pairs are of one family."""
        return self.mix(apart) + np.where(same, self.family(apart), 0.0)

    def _reach(self, apart: Floats) -> Floats:
        weights = np.exp(self.numbers[6 : 6 + len(BLOCKS)])
        found: Floats = np.sqrt(np.tensordot(weights, apart, axes=1))
        return found


def _matern(r: Floats) -> Floats:
    found: Floats = (1.0 + _ROOT3 * r) * np.exp(-_ROOT3 * r)
    return found


def same_family(left: Sequence[str], right: Sequence[str]) -> NDArray[np.bool_]:
    """Return which pairs are of one family [n, m]; "" is no family, not even its own."""
    a, b = np.array(left, dtype=object), np.array(right, dtype=object)
    found: NDArray[np.bool_] = (a[:, None] == b[None]) & (a != "")[:, None]
    return found


class ResidualGp:
    """The process after it saw `residuals` [n] at `features` [n, d] of programs of `families`.

    `inverse` [n, n] is that of their covariance, where it was kept: most of the work of a first answer.
    """

    def __init__(
        self,
        kernel: Kernel,
        features: Floats,
        families: Sequence[str],
        residuals: Floats,
        *,
        inverse: Floats | None = None,
    ) -> None:
        self.kernel, self.features, self.residuals = kernel, features, residuals
        self.families = tuple(families)
        self.mean = float(np.median(residuals)) if len(residuals) else 0.0
        self.inverse = self._inverted() if inverse is None else inverse
        self._weights: Floats = self.inverse @ (residuals - self.mean)

    def predict(self, features: Floats, families: Sequence[str]) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the residual of a measurement, by program [m]."""
        apart = distances(features, self.features)
        near = self.kernel.covariance(apart, same_family(families, self.families))
        known = np.einsum("mn,nk,mk->m", near, self.inverse, near, optimize=True)
        variance = np.maximum(self.kernel.variance - known, 0.0) + self.kernel.noise
        return self.mean + near @ self._weights, np.sqrt(variance)

    def _inverted(self) -> Floats:
        covariance = self.kernel.covariance(
            distances(self.features, self.features), same_family(self.families, self.families)
        )
        # A program is of its own family, also where that is none.
        covariance[np.diag_indices_from(covariance)] = self.kernel.variance + self.kernel.noise
        found = np.linalg.inv(covariance)
        symmetric: Floats = np.asarray((found + found.T) / 2, dtype=np.float64)
        return symmetric

    def left_out(self, groups: Sequence[Hashable]) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of each residual as the process says without the program's group.

        A program whose group is None stays: its own values are NaN.

        In closed form from the inverse covariance (Rasmussen and Williams 2006, 5.4.2, with blocks for single rows).
        """
        mean, sd = np.full(len(self.residuals), np.nan), np.full(len(self.residuals), np.nan)
        rows: dict[Hashable, list[int]] = {}
        for row, group in enumerate(groups):
            if group is not None:
                rows.setdefault(group, []).append(row)
        for places in rows.values():
            block = np.linalg.inv(self.inverse[np.ix_(places, places)])
            mean[places] = self.residuals[places] - block @ self._weights[places]
            sd[places] = np.sqrt(np.diag(block))
        return mean, sd

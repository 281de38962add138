"""A Gaussian process on the roofline's residuals: the logarithm of measured over computed time.

Two programs are similar by their op mix (Matern kernels over `features_of`, a wide and a narrow one) and by their
family: programs of one family share an offset and a separate kernel. A site's own runs enter as a family. Prediction
needs numpy only; the parameters of the kernel are found by gpuwaste.models.time_fit.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.program import DTYPE_BITS, KINDS
from gpuwaste.estimate.roofline import Roofline

Floats = NDArray[np.float64]
_DTYPES: Final = tuple(DTYPE_BITS)
_SMALL_FLOPS: Final = 1e7  # of one execution: with fewer, computing takes less time than the launch
_SMALL_B: Final = 1e5
BLOCKS: Final = (
    ("time_by_kind", len(KINDS)),
    ("bytes_by_kind", len(KINDS)),
    ("executions_by_kind", len(KINDS)),
    ("time_by_dtype", len(_DTYPES)),
    ("size", 4),
    ("flops_of_one", len(KINDS)),
    ("bytes_of_one", len(KINDS)),
)
"""Each block of columns and its width, in order."""
_NUMBERS: Final = 7  # parameters of a kernel besides the weights of blocks
KERNEL_SIZE: Final = _NUMBERS + len(BLOCKS)
_ROOT3: Final = float(np.sqrt(3.0))


def features_of(roofline: Roofline, work: Floats) -> Floats:
    """Return the columns of BLOCKS for each program [n, sum of widths]; `work` is that of the roofline's keys."""
    kinds = _summing(KINDS, [key.partition("/")[0] for key in roofline.keys])
    dtypes = _summing(_DTYPES, [key.partition("/")[2] for key in roofline.keys])
    time = roofline.parts(work)
    count, flops, moved = (work[:, :, part] @ kinds for part in range(3))
    totals = [part.sum(axis=1) for part in (count, flops, moved)]
    all_count, all_flops, all_moved = (np.maximum(total, 1.0) for total in totals)
    size = np.log(np.stack([all_flops, all_moved / all_count, all_flops / all_moved, all_count]))
    columns = (
        _share(time @ kinds),
        _share(moved),
        _share(count),
        _share(time @ dtypes),
        size.T,
        np.log1p(flops / np.maximum(count, 1.0) / _SMALL_FLOPS),
        np.log1p(moved / np.maximum(count, 1.0) / _SMALL_B),
    )
    found: Floats = np.concatenate(columns, axis=1)
    return found


def distances(left: Floats, right: Floats) -> Floats:
    """Return squared distances by block [blocks, n, m]."""
    found = np.empty((len(BLOCKS), len(left), len(right)))
    first = 0
    for place, (_, width) in enumerate(BLOCKS):
        a, b = left[:, first : first + width], right[:, first : first + width]
        squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None] - 2.0 * (a @ b.T)
        found[place] = np.maximum(squared, 0.0)
        first += width
    return found


def mix_overlap(left: Floats, right: Floats) -> Floats:
    """Return how much two programs share the kinds that they spend time in [n, m]: 1 same shares, 0 none in common."""
    width = BLOCKS[0][1]
    return left[:, :width] @ right[:, :width].T


def _summing(names: Sequence[str], of: Sequence[str]) -> Floats:
    """Return the matrix [k, names] that adds up columns of one name."""
    return np.array([[float(name == each) for name in names] for each in of]).reshape(len(of), len(names))


def _share(values: Floats) -> Floats:
    total = values.sum(axis=1, keepdims=True)
    found: Floats = np.sqrt(values / np.where(total > 0, total, 1.0))
    return found


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
        """The variance of a program about which nothing is known, without noise."""
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
        """Return the covariance, without noise; `same` [n, m] is true for pairs of one family."""
        return self.mix(apart) + np.where(same, self.family(apart), 0.0)

    def _reach(self, apart: Floats) -> Floats:
        weights = np.exp(self.numbers[6 : 6 + len(BLOCKS)])
        found: Floats = np.sqrt(np.tensordot(weights, apart, axes=1))
        return found


def _matern(r: Floats) -> Floats:
    found: Floats = (1.0 + _ROOT3 * r) * np.exp(-_ROOT3 * r)
    return found


def same_family(left: Sequence[str], right: Sequence[str]) -> NDArray[np.bool_]:
    """Return which pairs are of one family [n, m]; "" is no family, and not equal to itself."""
    a, b = np.array(left, dtype=object), np.array(right, dtype=object)
    found: NDArray[np.bool_] = (a[:, None] == b[None]) & (a != "")[:, None]
    return found


class ResidualGp:
    """The process conditioned on `residuals` [n] at `features` [n, d] of programs of `families`.

    `inverse` [n, n] is that of their covariance, if it was kept: most of the work of a first answer.
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
        # A program is of its own family, even if it has none.
        covariance[np.diag_indices_from(covariance)] = self.kernel.variance + self.kernel.noise
        found = np.linalg.inv(covariance)
        symmetric: Floats = np.asarray((found + found.T) / 2, dtype=np.float64)
        return symmetric

    def left_out(self, groups: Sequence[Hashable]) -> tuple[Floats, Floats]:
        """Return the predicted mean and standard deviation of each residual without the program's group.

        A program whose group is None is never left out: its own values are NaN.

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

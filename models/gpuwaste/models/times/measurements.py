"""Measured programs of one type of GPU, as the fit takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.op_sums import OpSum

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measurements:
    """One row for each program: its sums, its family, the seconds of a step, and whether it is a site's own run."""

    sums: tuple[Mapping[str, OpSum], ...]
    families: tuple[str, ...]
    seconds: Floats
    own: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.sums)

    def take(self, rows: Sequence[int] | NDArray[Any]) -> "Measurements":
        """Return these rows."""
        places = [int(row) for row in rows]
        return Measurements(
            tuple(self.sums[row] for row in places),
            tuple(self.families[row] for row in places),
            self.seconds[places],
            self.own[places],
        )


def measurements(rows: Sequence[tuple[Mapping[str, OpSum], str, float, bool]]) -> Measurements:
    """Return rows of sums, family, seconds and whether it is an own run."""
    return Measurements(
        tuple(row[0] for row in rows),
        tuple(row[1] for row in rows),
        np.array([row[2] for row in rows], dtype=np.float64),
        np.array([row[3] for row in rows], dtype=np.bool_),
    )

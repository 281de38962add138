"""What a feature is, and the columns that groups of features read."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the vector: its name, its unit ("" for a ratio or a count), and how a reason words it.

    `text` is a sentence part with {value}, such as "{value} of this user's last 8 jobs failed".
    """

    name: str
    unit: str
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """Features computed together: `compute(context)` returns float32 [n, len(features)]."""

    features: tuple[Feature, ...]
    compute: Callable[..., NDArray[np.float32]]

"""What a feature is, and a group of them: one file each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwaste.predict.context import Context
from gpuwaste.predict.keys import KEYS

Block = NDArray[np.floating]


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
    """Features computed together: `compute(context)` returns [n, len(features)], NaN or infinite for "not known"."""

    features: tuple[Feature, ...]
    compute: Callable[[Context], Block]


def by_key(*features: Feature) -> tuple[Feature, ...]:
    """Return the features of every key, key by key: KEY_name, and in its text {jobs} as that key says it."""
    return tuple(
        Feature(f"{key.name}_{f.name}", f.unit, f.text.replace("{jobs}", f"jobs {key.text}"))
        for key in KEYS
        for f in features
    )


def joined(block: Block) -> Block:
    """Return a block [n, keys, features] as columns [n, keys * features]."""
    return block.reshape(len(block), -1)

"""What a feature is, and a group of them: one file each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwaste.history.keys import KEYS
from gpuwaste.predict.context import Context

Block = NDArray[np.float32]


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
    """Features computed together by `compute(context, out)`, which fills `out`, float32 [n, len(features)].

    With `per_key` they stand for every key, and out is [n, keys, len(features)]; the name of a key is put before
    theirs and "{jobs}" in their texts becomes that key's. "Not known" is NaN or infinite.
    """

    features: tuple[Feature, ...]
    compute: Callable[[Context, Block], None]
    per_key: bool = True


def feature_list(groups: tuple[Group, ...]) -> tuple[Feature, ...]:
    """Return the vector's columns: those of the request, then key by key the others."""
    keyed = [feature for group in groups if group.per_key for feature in group.features]
    return (
        *(feature for group in groups if not group.per_key for feature in group.features),
        *(
            Feature(f"{key.name}_{f.name}", f.unit, f.text.replace("{jobs}", f"jobs {key.text}"))
            for key in KEYS
            for f in keyed
        ),
    )

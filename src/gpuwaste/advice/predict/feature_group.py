"""What a feature is, and a group of them: one file each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.feature_context import Context
from gpuwaste.jobs.history.history_keys import KEYS

Block = NDArray[np.float32]
Step = Callable[[], object]


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
    """Features computed together: `steps(context, out)` are what fills `out`, float32 [n, len(features)], in order.

    The steps may be run again whenever the context's arrays hold other numbers: to make the arrays' views anew for each
    job would take twice as long as the arithmetic.

    With `per_key` they stand for every key, and out is [n, keys, len(features)]; the name of a key is put before
    theirs and "{jobs}" in their texts becomes that key's. "Not known" is NaN or infinite. `history` says whether they
    come from earlier jobs; those of the request alone come first in GROUPS. A reason is told of a group
    by its `name`, since what moves together is explained together; `text` says what it is, "" for what its file says.
    """

    name: str
    text: str
    features: tuple[Feature, ...]
    steps: Callable[[Context, Block], Iterable[Step]]
    per_key: bool = True
    history: bool = True


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


def copied(out: NDArray[Any], values: NDArray[Any]) -> Step:
    """Return the step that copies values, into another type where that of `out` is another."""
    return partial(out.__setitem__, ..., values)


def like(values: NDArray[Any]) -> Block:
    """Return room for the same values as float32: arithmetic that casts costs three times as much."""
    return np.empty(values.shape, dtype=np.float32)

"""Feature and Group: one file for each group of features."""

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
    """Features computed together: `steps(context, out)` fill `out`, float32 [n, len(features)], in order.

    The steps may be run again whenever the context's arrays have other numbers: making views of the arrays for each job
    would take twice as long as the arithmetic.

    With `per_key` they apply to every key, and out is [n, keys, len(features)]; the name of a key is put before theirs
    and "{jobs}" in their texts becomes that key's. Unknown is NaN or infinite. `history` is whether they are computed
    from earlier jobs; those of only the request are first in GROUPS. A reason names a group by its `name`, since
    features that move together are explained together; `text` describes the group, "" to use the text of its file.
    """

    name: str
    text: str
    features: tuple[Feature, ...]
    steps: Callable[[Context, Block], Iterable[Step]]
    per_key: bool = True
    history: bool = True


def feature_list(groups: tuple[Group, ...]) -> tuple[Feature, ...]:
    """Return the vector's columns: those of the request, then the others key by key."""
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
    """Return the step that copies values, cast to the type of `out`."""
    return partial(out.__setitem__, ..., values)


def like(values: NDArray[Any]) -> Block:
    """Return an array for the same values as float32: arithmetic that casts costs three times as much."""
    return np.empty(values.shape, dtype=np.float32)

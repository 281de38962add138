"""The features, a file for each group: one function from a context to vectors, for one job and for many.

May import predict's table, rows and context. A new group is a file with GROUP and its name in GROUPS.
"""

import hashlib
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.predict.context import Context
from gpuwaste.predict.features import durations, gpu, memory, outcomes, queue, request, script
from gpuwaste.predict.features.base import Feature, Group

FEATURE_VERSION: Final = 1  # of what the names mean: raise it when a formula, a key or the packed state changes
GROUPS: Final[tuple[Group, ...]] = (
    request.GROUP,
    script.GROUP,
    outcomes.GROUP,
    durations.GROUP,
    queue.GROUP,
    memory.GROUP,
    gpu.GROUP,
)
FEATURES: Final[tuple[Feature, ...]] = tuple(feature for group in GROUPS for feature in group.features)


@cache
def feature_hash() -> str:
    """Return the sha256 in hex over version and names: bundles and snapshots of another one are refused."""
    return hashlib.sha256("\n".join((str(FEATURE_VERSION), *(f.name for f in FEATURES))).encode()).hexdigest()


def vectors(context: Context, groups: tuple[Group, ...] = GROUPS) -> NDArray[np.float32]:
    """Return the vectors [n, F] of a context; a value is NaN where it is not known and never infinite."""
    result = np.empty((len(context.requests), sum(len(group.features) for group in groups)), dtype=np.float32)
    at = 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for group in groups:
            upto = at + len(group.features)
            result[:, at:upto] = group.compute(context)
            at = upto
    return result

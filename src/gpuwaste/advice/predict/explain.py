"""Why a model predicts a value: what changes when a group of features takes the values usual at the site.

Occlusion by group: features that move together (how your jobs ended, counted five ways) are set to their references at
once, since a model that loses one of them uses the next. One batch of all groups is one call of the model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.features import FEATURES, GROUPS
from gpuwaste.advice.predict.prediction_types import Reason
from gpuwaste.advice.predict.vector_words import (
    ENDED,
    FAILED,
    GPU_ACTIVE,
    GPU_USED,
    LAST_FAILED,
    LATE,
    LIMIT,
    LONGEST,
    OWN,
    PEAK,
    VectorView,
    feature_text,
    last_jobs,
    others_text,
    span,
)
from gpuwaste.core.units import say_duration
from gpuwaste.jobs.history.history_keys import KEYS

Vectors = NDArray[np.float32]
TOP: Final = 3
_KEYS: Final = tuple(key.name for key in KEYS)
# Columns of the request that belong together; each other column of the request is its own group.
_REQUEST: Final = {
    "limit_past_hour": "limit",
    "limit_past_day": "limit",
    "mem_per_cpu": "mem",
    "mem_per_gpu": "mem",
    "cpus_per_node": "cpus",
    "cpus_per_gpu": "cpus",
    "gpus_per_node": "gpus",
    "weekday": "hour",
    "name_length": "name_test",
    "name_digits": "name_test",
}
# The features of a key that make a sentence, the best first.
_SPEAKING: Final = (
    FAILED, LAST_FAILED, LATE, LONGEST, PEAK, GPU_USED, GPU_ACTIVE, "burst", "queued", "running", "since_end", ENDED,
)  # fmt: skip
_ALWAYS: Final = frozenset({FAILED, LAST_FAILED, GPU_USED, GPU_ACTIVE, ENDED})  # gives a sentence at 0 too
_COUNTS: Final = frozenset({FAILED, LATE})  # of several jobs, not of one


@dataclass(frozen=True, slots=True)
class Bundled:
    """Features that are set to their references together: their columns in the vector, and whose jobs they describe."""

    name: str
    columns: tuple[int, ...]


@cache
def bundled() -> tuple[Bundled, ...]:
    """Return the groups; every feature is in exactly one."""
    subjects: dict[str, tuple[str, str]] = {}
    for group in GROUPS:
        for key in _KEYS if group.per_key else ("",):
            subjects |= {f"{key}_{f.name}" if key else f.name: (key, group.name) for f in group.features}
    found: dict[str, list[int]] = {}
    for place, feature in enumerate(FEATURES):
        found.setdefault(_bundle_of(feature.name, *subjects[feature.name]), []).append(place)
    return tuple(Bundled(name, tuple(columns)) for name, columns in found.items())


def occluded(vector: Vectors, references: Sequence[float | None], groups: Sequence[Bundled]) -> Vectors:
    """Return float32 [1 + groups, F]: the vector, then the vector with each group set to its references."""
    usual = np.array([np.nan if value is None else value for value in references], dtype=np.float32)
    rows = np.repeat(vector[None, :], 1 + len(groups), axis=0)
    for place, group in enumerate(groups, 1):
        rows[place, group.columns] = usual[list(group.columns)]
    return rows


def reasons(
    view: VectorView,
    vector: Vectors,
    references: Sequence[float | None],
    score: Callable[[Vectors], NDArray[np.float64]],
    least: float,
) -> tuple[Reason, ...]:
    """Return the groups whose reference would change the score by `least` or more, the largest change first.

    `score` maps vectors [n, F] to what is explained [n]. A group without a known number gives no reason.
    """
    groups = bundled()
    scores = score(occluded(vector, references, groups))
    effects = scores[0] - scores[1:]
    found: list[Reason] = []
    for place in np.argsort(-np.abs(effects), kind="stable"):
        if abs(effects[place]) < least or len(found) == TOP:
            break
        reason = _reason(groups[place], view, references, float(effects[place]))
        if reason is not None:
            found.append(reason)
    return tuple(found)


def _bundle_of(name: str, key: str, subject: str) -> str:
    """Return the group of a feature; the user's own keys describe the same jobs, so they are one group."""
    if subject == "predecessors":
        return "own outcomes"
    if key:
        return f"{'own' if key in OWN else key} {subject}"
    return "script" if subject == "script" else _REQUEST.get(name, name)


def _reason(group: Bundled, view: VectorView, references: Sequence[float | None], effect: float) -> Reason | None:
    owner, _, subject = group.name.partition(" ")
    if owner in _KEYS:
        return Reason(group.name.replace(" ", "_"), None, None, effect, others_text(owner, subject))
    chosen = _speaking(group, view, own=owner == "own")
    if chosen is None:
        return None
    column, key = chosen
    feature = FEATURES[column]
    value = view[feature.name]
    durations = feature.name == f"{key}_{LONGEST}"
    text = _durations(view, key) if durations else feature_text(feature, value, key, view)
    return Reason(feature.name, value, references[column], effect, text)


def _speaking(group: Bundled, view: VectorView, *, own: bool) -> tuple[int, str] | None:
    """Return the column that represents a group, and its key: among the user's own keys the one most like this job."""
    known = {FEATURES[column].name: column for column in group.columns if FEATURES[column].name in view}
    if not own:
        return (next(iter(known.values())), "") if known else None
    for key in OWN:
        if (key == "name" and not view.request.name) or not view.remembered(key):
            continue
        for name in _SPEAKING:
            column = known.get(f"{key}_{name}")
            if column is not None and _says(view, key, name):
                return column, key
    return None


def _says(view: VectorView, key: str, name: str) -> bool:
    """Return whether a number is worth a sentence: that no job failed is, that no job waits is not."""
    if name in _COUNTS or name == LAST_FAILED:
        alone = view.remembered(key) == 1
        if alone != (name == LAST_FAILED):
            return False
    return name in _ALWAYS or bool(view[f"{key}_{name}"])


def _durations(view: VectorView, key: str) -> str:
    """Return "you requested 12 h; your last 5 jobs named train ran 20 min to 35 min"."""
    limit = view.get(LIMIT)
    asked = f"you requested {say_duration(limit)}; " if limit is not None else ""
    return f"{asked}{last_jobs(key, view)} ran {span(view, key)}"

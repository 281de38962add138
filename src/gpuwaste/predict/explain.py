"""Why a model says what it says: what changes when a group of features takes the values usual at the site.

Occlusion by group: features that move together (how your jobs ended, counted five ways) are put to their references
at once, since a model that loses one of them leans on the next. One batch of all groups is one call of the model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.units import say_duration
from gpuwaste.predict.features import FEATURES, GROUPS
from gpuwaste.predict.keys import KEYS
from gpuwaste.predict.prediction import Reason
from gpuwaste.predict.view import OWN, View
from gpuwaste.predict.wording import feature_text, last_jobs, others_text

Vectors = NDArray[np.float32]
TOP: Final = 3
_KEYS: Final = tuple(key.name for key in KEYS)
# What of the request hangs together; the other columns of the request stand alone.
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
# The features of a key's group that make a sentence, the best first.
_SPEAKING: Final = (
    "fails_8", "fail_1", "at_limit_8", "cancelled_8", "run_max_8", "run_1", "peak_1", "gpu_used", "gpu_active",
    "burst", "queued", "running", "since_end", "ended",
)  # fmt: skip
_COUNTS: Final = frozenset({"fails_8", "at_limit_8", "cancelled_8"})  # of several jobs, not of one


@dataclass(frozen=True, slots=True)
class Bundled:
    """Features that are put to their references together: their columns in the vector, and whose jobs they tell of."""

    name: str
    columns: tuple[int, ...]


def bundled() -> tuple[Bundled, ...]:
    """Return the groups; every feature is in exactly one."""
    found: dict[str, list[int]] = {}
    place = 0
    for group in GROUPS:
        subject = group.compute.__module__.rpartition(".")[2]
        for feature in group.features:
            found.setdefault(_bundle_of(feature.name, subject), []).append(place)
            place += 1
    return tuple(Bundled(name, tuple(columns)) for name, columns in found.items())


def occluded(vector: Vectors, references: Sequence[float | None], groups: Sequence[Bundled]) -> Vectors:
    """Return float32 [1 + groups, F]: the vector, then with each group at its references."""
    usual = np.array([np.nan if value is None else value for value in references], dtype=np.float32)
    rows = np.repeat(vector[None, :], 1 + len(groups), axis=0)
    for place, group in enumerate(groups, 1):
        rows[place, group.columns] = usual[list(group.columns)]
    return rows


def reasons(
    view: View,
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


def _bundle_of(name: str, subject: str) -> str:
    """Return the group of a feature; the user's own keys tell of the same jobs, so they are one."""
    if subject == "script":
        return "script"
    if subject == "request":
        return _REQUEST.get(name, name)
    key = next(key for key in _KEYS if name.startswith(f"{key}_"))
    return f"{'own' if key in OWN else key} {subject}"


def _reason(group: Bundled, view: View, references: Sequence[float | None], effect: float) -> Reason | None:
    owner, _, subject = group.name.partition(" ")
    if owner in _KEYS:
        return Reason(group.name.replace(" ", "_"), None, None, effect, others_text(owner, subject))
    chosen = _speaking(group, view, own=owner == "own")
    if chosen is None:
        return None
    column, key = chosen
    feature = FEATURES[column]
    value = view.values[feature.name]
    text = _durations(view, key) if feature.name.endswith("run_max_8") else None
    return Reason(
        feature=feature.name,
        value=value,
        usual=references[column],
        effect=effect,
        text=text or feature_text(feature, value, key, view),
    )


def _speaking(group: Bundled, view: View, *, own: bool) -> tuple[int, str] | None:
    """Return the column that speaks for a group, and its key: of the user's own jobs those most like this one."""
    known = {FEATURES[column].name: column for column in group.columns if FEATURES[column].name in view.values}
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


def _says(view: View, key: str, name: str) -> bool:
    """Tell whether a count is worth a sentence: that none of them failed is, that none waits is not."""
    alone = view.remembered(key) == 1
    if name in _COUNTS or name == "fail_1":
        return (name == "fail_1") == alone and (name in {"fails_8", "fail_1"} or bool(view.values[f"{key}_{name}"]))
    return name in {"gpu_used", "gpu_active", "ended"} or bool(view.values[f"{key}_{name}"])


def _durations(view: View, key: str) -> str | None:
    """Return "you asked for 12 h; your last 5 jobs named train ran 20 min to 35 min"."""
    low, high = view.get(f"{key}_run_min_8"), view.get(f"{key}_run_max_8")
    if low is None or high is None:
        return None
    span = (
        say_duration(high)
        if say_duration(low) == say_duration(high)
        else f"{say_duration(low)} to {say_duration(high)}"
    )
    limit = view.get("limit")
    asked = f"you asked for {say_duration(limit)}; " if limit is not None else ""
    return f"{asked}{last_jobs(key, view)} ran {span}"

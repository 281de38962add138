"""A feature vector by name and by key, its numbers in words addressed to the job's user."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.feature_group import Feature
from gpuwaste.core.units import DAY_S, HOUR_S, format_size, say_duration
from gpuwaste.jobs.history.history_keys import KEYS
from gpuwaste.slurm.submit.job_request import JobRequest

RING: Final = 8  # number of earlier runs that a vector covers, see predict/features
# The features of a key that sentences and counts use. If a feature is renamed, rename it here; nowhere else.
ENDED: Final = "ended"
FAILED: Final = "failed_8"
COMPLETED: Final = "completed_8"
LATE: Final = "late_8"
LAST_FAILED: Final = "fail_1"
LAST_RUNS: Final = ("run_1", "run_2", "run_3")
LONGEST: Final = "run_max"
SHORTEST: Final = "run_min"
PEAK: Final = "peak_max"
GPU_USED: Final = "gpu_used"
GPU_ACTIVE: Final = "gpu_active"
LIMIT: Final = "limit"  # of the request
OF_LIMIT: Final = "_of_limit"  # suffix of a run time that is a share of the limit
OWN: Final = ("name", "shape", "user")  # keys of the user's own jobs, the most like this one first
_NAME: Final = 40
_SECONDS: Final = {"s": 1, "h": HOUR_S, "d": DAY_S}
_TEXTS: Final = {key.name: key.text for key in KEYS}
_ONE: Final = re.compile(r"\b1 (node|CPU|GPU)s\b")
_SUBJECTS: Final = {
    "outcomes": "how {jobs} ended lately",
    "durations": "how long {jobs} ran lately",
    "queue": "how many {jobs} are pending and running",
    "memory": "how much memory {jobs} used lately",
    "gpu": "how {jobs} used their GPUs lately",
}


@lru_cache(maxsize=8)
def _places(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: place for place, name in enumerate(names)}


@dataclass(slots=True)
class VectorView:
    """One request and its vector by name: an unknown number is absent."""

    request: JobRequest
    _at: Mapping[str, int]
    _numbers: list[float]
    _remembered: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, request: JobRequest, names: tuple[str, ...], vector: NDArray[np.float32]) -> "VectorView":
        """Return the view of a vector whose columns are `names`."""
        return cls(request, _places(names), vector.tolist())

    def get(self, name: str) -> float | None:
        """Return a feature's value, None if it is unknown."""
        place = self._at.get(name)
        value = math.nan if place is None else self._numbers[place]
        return value if math.isfinite(value) else None

    def __getitem__(self, name: str) -> float:
        if (value := self.get(name)) is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def seconds(self, key: str, name: str) -> float | None:
        """Return a run time of a key's jobs: the value in the vector, or its share of the limit times the limit."""
        if (value := self.get(f"{key}_{name}")) is not None:
            return value
        share, limit = self.get(f"{key}_{name}{OF_LIMIT}"), self.get(LIMIT)
        return None if share is None or limit is None else share * limit

    def remembered(self, key: str) -> int:
        """Return how many of a key's ended jobs the vector covers."""
        count = self._remembered.get(key)
        if count is None:
            count = self._remembered[key] = min(RING, round(self.get(f"{key}_{ENDED}") or 0.0))
        return count

    def own_key(self, least: int = 1, *also: str) -> str | None:
        """Return the most specific key of the user's own jobs with `least` ended ones and every feature of `also`."""
        for key in OWN:
            if key == "name" and not self.request.name:
                continue
            if self.remembered(key) >= least and all(f"{key}_{name}" in self for name in also):
                return key
        return None


def number(value: float, digits: int = 1) -> str:
    """Return a number as text, without ".0"."""
    return f"{value:.{digits}f}".removesuffix(".0")


def amount(value: float, unit: str) -> str:
    """Return a value with its unit in words."""
    if unit in _SECONDS:
        return say_duration(value * _SECONDS[unit])
    if unit == "B":
        return format_size(value)
    return f"{value:.0f}" if value == round(value) else number(value, 1 if abs(value) >= 1 else 2)


def named(key: str, view: VectorView) -> str:
    """Return the words that identify the user's jobs of a key: " named train"."""
    if key == "name":
        return f" named {view.request.name[:_NAME]}"
    return " of this size and limit" if key == "shape" else ""


def last_jobs(key: str, view: VectorView) -> str:
    """Return "your last 8 jobs named train", with as many as there are."""
    count = view.remembered(key)
    return f"your last {count} jobs{named(key, view)}" if count > 1 else f"your last job{named(key, view)}"


def span(view: VectorView, key: str) -> str:
    """Return how long a key's last jobs ran: "20 min to 27 min", "up to 27 min" if the shortest is unknown."""
    low, high = view.seconds(key, SHORTEST), view.seconds(key, LONGEST)
    longest = "" if high is None else say_duration(high)
    if low is None:
        return f"up to {longest}"
    return longest if say_duration(low) == longest else f"{say_duration(low)} to {longest}"


def feature_text(feature: Feature, value: float, key: str, view: VectorView) -> str:
    """Return a feature's own sentence with its value, addressed to the user; `key` is one of theirs, "" for none."""
    flag = "{value}: 1 yes, 0 no"
    shown = amount(value, feature.unit)
    if flag in feature.text:
        text = feature.text.replace(f" ({flag})", "")
        text = text if value else text.replace(" failed", " did not fail") if " failed" in text else f"no: {text}"
    else:
        text = feature.text.replace("{value}", shown)
    if key:
        jobs, yours = f"jobs {_TEXTS[key]}", f"your jobs{named(key, view)}"
        text = text.replace(f"the last {RING} {jobs}", last_jobs(key, view))
        text = text.replace(f"the last of the {jobs}", f"your last job{named(key, view)}")
        text = text.replace(f"{shown} {jobs}", f"{shown} of {yours}").replace(f"of the {jobs}", f"of {yours}")
        text = text.replace(jobs, yours)
    return _ONE.sub(r"1 \1", text)


def others_text(key: str, subject: str) -> str:
    """Return a sentence on jobs of others too: without numbers, which would disclose others' jobs."""
    return _SUBJECTS[subject].format(jobs=f"jobs {_TEXTS[key]}")

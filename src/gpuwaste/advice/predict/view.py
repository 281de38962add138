"""A vector by name: what a request's history says, key by key, in numbers that are known."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.slurm.submit.request import JobRequest

RING: Final = 8  # earlier runs that a vector tells of, see predict/features
# The features of a key that sentences and counts are made of. A renamed feature is renamed here, and only here.
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
OF_LIMIT: Final = "_of_limit"  # after a run time that stands as a share of the limit
OWN: Final = ("name", "shape", "user")  # keys of the user's own jobs, the most like this one first


@lru_cache(maxsize=8)
def _places(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: place for place, name in enumerate(names)}


@dataclass(slots=True)
class VectorView:
    """One request and its vector by name: a number that is not known is absent."""

    request: JobRequest
    _at: Mapping[str, int]
    _numbers: list[float]
    _remembered: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, request: JobRequest, names: tuple[str, ...], vector: NDArray[np.float32]) -> "VectorView":
        """Return the view of a vector whose columns are `names`."""
        return cls(request, _places(names), vector.tolist())

    def get(self, name: str) -> float | None:
        """Return a feature's value, None where it is not known."""
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
        """Return a run time of a key's jobs: as it stands in the vector, or as its share of the limit."""
        if (value := self.get(f"{key}_{name}")) is not None:
            return value
        share, limit = self.get(f"{key}_{name}{OF_LIMIT}"), self.get(LIMIT)
        return None if share is None or limit is None else share * limit

    def remembered(self, key: str) -> int:
        """Return how many of a key's ended jobs the vector looks back on."""
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

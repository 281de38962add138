"""The features of a user's last submitted jobs in plain Python, as their definitions read; see plain_history."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gpuwaste.jobs.history.outcome import Outcome

NAN = math.nan


@dataclass(slots=True)
class Sent:
    """A submitted run: what it is compared by, and how far it has come; an instant is None where it is to come."""

    kinds: dict[str, tuple[Any, ...]]
    submit: int
    start: int | None = None
    end: int | None = None
    outcome: Outcome = Outcome.UNKNOWN

    def ran(self, now: int) -> float:
        """Return how long it ran, or runs by now; 0 before its start."""
        if self.start is None:
            return 0.0
        return (now if self.end is None else self.end) - self.start

    @property
    def failed(self) -> bool:
        """Whether it ended and failed."""
        return self.end is not None and self.outcome in {Outcome.FAILED, Outcome.OUT_OF_MEMORY}

    @property
    def completed(self) -> bool:
        """Whether it ended and did not fail."""
        return self.end is not None and self.outcome == Outcome.COMPLETED


def of_predecessors(runs: list[Sent], kinds: dict[str, tuple[Any, ...]], now: int) -> dict[str, float]:
    """Return the features by name; `runs` are the user's, the newest first."""
    values: dict[str, float] = {}
    for key in ("user", "name", "shape", "exact"):
        mine = [(back, run) for back, run in enumerate(runs) if key == "user" or run.kinds[key] == kinds[key]]
        scale = _odds(run for _, run in mine) / _odds(runs)
        likely = [_likely(run, runs, scale, now) for _, run in mine]
        unended = [run for _, run in mine if run.end is None]
        ages = [math.exp(-(now - run.submit) / 86400) for _, run in mine]
        backs = [back for back, _ in mine]
        means = {
            "likely_1": [0.3**back for back in backs], "likely_fast": [0.75**back for back in backs],
            "likely_slow": [0.93**back for back in backs], "likely_day": ages,
            "likely_open": [float(run.end is None) for _, run in mine],
        }  # fmt: skip
        values |= {f"{key}_{name}": _mean(likely, weights) for name, weights in means.items()}
        values[f"{key}_open"] = float(len(unended))
        values[f"{key}_open_age"] = max((run.ran(now) for run in unended), default=0.0)
    return values


def _odds(runs: Iterable[Sent], counts: Callable[[Sent], bool] = lambda _: True) -> float:
    """Return failures to completed runs among those that count, beside .3 and 1.7 of which nothing is known."""
    counted = [run for run in runs if counts(run)]
    return (sum(run.failed for run in counted) + 0.3) / (sum(run.completed for run in counted) + 1.7)


def _likely(run: Sent, runs: list[Sent], scale: float, now: int) -> float:
    """Return how likely a run is to fail, or 1, 0, .5 where it has ended."""
    if run.end is not None:
        return 1.0 if run.failed else 0.0 if run.completed else 0.5
    odds = scale * _odds(runs, lambda other: other.ran(now) >= run.ran(now))
    return odds / (1.0 + odds)


def _mean(values: list[float], weights: list[float]) -> float:
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights) if sum(weights) else NAN

"""Requests that may serve a job better, a file in this folder for each kind, with `propose(asked)`.

Files that follow a prediction get its changes as options of sbatch from this module.
"""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from gpuwaste.advice.predict.prediction_types import RequestChange
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.plan.plan_request import PlanRequest

MAX_CANDIDATES: Final = 16
"""Each costs slurmctld one --test-only: a site with a hundred partitions must not get a hundred of them."""
GPUS: Final = "gpus"
TIME: Final = "time_limit_s"
MEMORY: Final = "mem_b"


@dataclass(frozen=True, slots=True)
class RequestCandidate:
    """One request: the options of sbatch that change the original request into it, and why.

    `jobs` above 1 is a cascade: that many jobs, each after the previous one. `needs` is what the user must ensure
    first, "" for nothing: a candidate with needs is never chosen automatically. `advice` marks one that no option can
    make.
    PlanCandidate is the same after it was checked and predicted.
    """

    kind: str
    title: str
    options: tuple[str, ...] = ()
    text: str = ""
    jobs: int = 1
    needs: str = ""
    advice: bool = False


Propose = Callable[[PlanRequest], Iterable[RequestCandidate]]


@cache
def proposers() -> dict[str, Propose]:
    """Return the `propose` of each file by file name, in the order of their RANK."""
    ranked = ModuleRegistry[Any](__name__, "RANK", "propose").ordered_by("RANK")
    return {name: module.propose for name, module in ranked.items()}


def all_candidates(asked: PlanRequest) -> list[RequestCandidate]:
    """Return all candidates, the original request first, no two with the same options, at most MAX_CANDIDATES."""
    found: dict[tuple[object, ...], RequestCandidate] = {}
    for propose in proposers().values():
        for one in propose(asked):
            found.setdefault((one.options, one.jobs, one.advice and one.kind), one)
    return list(found.values())[:MAX_CANDIDATES]


def change_of(asked: PlanRequest, amount: str) -> RequestChange | None:
    """Return the change of that amount (a key of its `after`), None where the model and history propose none."""
    return next((one for one in asked.changes if amount in one.after and amount in one.before), None)


def options_of(change: RequestChange) -> tuple[str, ...]:
    """Return the options of its #SBATCH line."""
    return tuple(shlex.split(change.option.removeprefix("#SBATCH ")))

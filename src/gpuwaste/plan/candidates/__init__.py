"""Requests that may serve a job better, a file for each kind with `propose(asked)`. A file is found by being here."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from gpuwaste.plan.plan_request import PlanRequest

MAX_CANDIDATES: Final = 16
"""Each costs slurmctld one --test-only, so that a site with a hundred partitions is not asked a hundred times."""


@dataclass(frozen=True, slots=True)
class RequestCandidate:
    """One request: the options of sbatch that make it out of what was asked, and why.

    `jobs` above 1 is a cascade: that many jobs, each after the one before. `needs` is what the user must see to before
    it works, "" for nothing: such a candidate is never chosen by itself. `advice` marks one that no option can make.
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
    """Return the `propose` of each file by the file's name, in the order of their RANK."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    ranked = sorted(modules.items(), key=lambda item: (item[1].RANK, item[0]))
    return {name: module.propose for name, module in ranked}


def all_candidates(asked: PlanRequest) -> list[RequestCandidate]:
    """Return every candidate, as asked first, no two of the same options, at most MAX_CANDIDATES."""
    found: dict[tuple[object, ...], RequestCandidate] = {}
    for propose in proposers().values():
        for one in propose(asked):
            found.setdefault((one.options, one.jobs, one.advice and one.kind), one)
    return list(found.values())[:MAX_CANDIDATES]

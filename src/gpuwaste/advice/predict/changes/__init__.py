"""Smaller requests, a file each with `propose(request, said) -> Proposal | None`. A file is found by being here."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from gpuwaste.advice.predict.prediction import TargetPrediction
from gpuwaste.slurm.submit.request import JobRequest


@dataclass(frozen=True, slots=True)
class ChangeProposal:
    """Another request, the line that asks for it, why, and the amount that changes, before and after."""

    request: JobRequest
    option: str
    text: str
    before: Mapping[str, float]
    after: Mapping[str, float]


Said = Mapping[str, TargetPrediction]
Propose = Callable[[JobRequest, Said], ChangeProposal | None]


@cache
def proposers() -> dict[str, Propose]:
    """Return the `propose` of each file by the file's name."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return {name: importlib.import_module(f"{__name__}.{name}").propose for name in names}

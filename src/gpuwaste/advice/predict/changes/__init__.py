"""Smaller requests, a file each with `propose(request, said) -> Proposal | None`. A file is found by being here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from gpuwaste.advice.predict.prediction import TargetPrediction
from gpuwaste.core.registry import ModuleRegistry
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
    return {name: module.propose for name, module in ModuleRegistry[Any](__name__, "propose").items()}

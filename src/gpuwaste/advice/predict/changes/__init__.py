"""Smaller requests, a file each with `propose(request, said) -> Proposal | None`; only those that help are kept.

Every file in this directory is loaded. Each proposal is scored again as a request of its own.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from gpuwaste.advice.predict.prediction_types import RequestChange, TargetPrediction
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.slurm.submit.sbatch_options import Given

Score = Callable[[Sequence[JobRequest]], list[tuple[TargetPrediction, ...]]]
MORE_RISK: Final = 0.02  # a change that raises the probability of failure or timeout by more than this does not help
LIKELY: Final = 0.5  # of failure or timeout; above it earlier runs show little about the needs of a job that works


@dataclass(frozen=True, slots=True)
class ChangeProposal:
    """Another request, the line that sets it, why, and the amount that changes, before and after."""

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


def asked(request: JobRequest) -> Mapping[str, Given]:
    """Return the options of the script's component that matches this request; none without a script."""
    if request.script is None:
        return {}
    try:
        read = read_submission(request.script)
    except GpuwasteError:
        return {}
    for found, options in zip(read.requests, read.options, strict=True):
        if (found.nodes, found.cpus, found.gpus) == (request.nodes, request.cpus, request.gpus):
            return options
    return {}


def safe(said: TargetPrediction | None, least: float) -> tuple[float, float] | None:
    """Return the highest quantile with a level of `least` or more, as (level, value)."""
    levels = [(float(q), value) for q, value in said.quantiles.items() if float(q) >= least] if said else []
    return max(levels) if levels else None


def share_text(level: float, basis: TargetPrediction) -> str:
    """Return how sure a quantile is, in words."""
    if basis.source == "history":
        return f"the longest of your last {basis.basis} such jobs"
    return f"{level * 100:g} of 100 such jobs"


def changes(
    request: JobRequest, said: Sequence[TargetPrediction], score: Score, only: Container[str] | None = None
) -> tuple[RequestChange, ...]:
    """Return the changes that help, each independent of the others; `only` are the kinds wanted, None for all."""
    by_name = {target.target: target for target in said}
    if any(_risks(said).get(name, 0.0) >= LIKELY for name in ("failure", "timeout")):
        return ()
    wanted = [propose for kind, propose in proposers().items() if only is None or kind in only]
    proposals = [p for propose in wanted if (p := propose(request, by_name)) is not None]
    if not proposals:
        return ()
    answers = score([proposal.request for proposal in proposals])
    found = [_change(proposal, by_name, answer) for proposal, answer in zip(proposals, answers, strict=True)]
    return tuple(change for change in found if change is not None)


def _change(
    proposal: ChangeProposal, said: Mapping[str, TargetPrediction], answer: Sequence[TargetPrediction]
) -> RequestChange | None:
    before, after = _risks(said.values()), _risks(answer)
    for name in ("failure", "timeout"):
        if name in before and name in after and after[name] > before[name] + MORE_RISK:
            return None
    return RequestChange(proposal.option, proposal.text, {**proposal.before, **before}, {**proposal.after, **after})


def _risks(targets: Iterable[TargetPrediction]) -> dict[str, float]:
    return {t.target: t.p for t in targets if t.p is not None}

"""What a smaller request would change: each candidate is scored again, and only one that helps is told."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Final

from gpuwaste.advice.predict.changes import ChangeProposal, proposers
from gpuwaste.advice.predict.prediction import RequestChange, TargetPrediction
from gpuwaste.slurm.submit.request import JobRequest

Score = Callable[[Sequence[JobRequest]], list[tuple[TargetPrediction, ...]]]
MORE_RISK: Final = 0.02  # a change that makes a failure or a timeout this much more likely does not help
LIKELY: Final = 0.5  # of a job that likely fails, earlier runs say little about what it needs when it works


def changes(
    request: JobRequest, said: Sequence[TargetPrediction], score: Score, only: Container[str] | None = None
) -> tuple[RequestChange, ...]:
    """Return the changes that help, each alone; `only` are the kinds wanted, None for all."""
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

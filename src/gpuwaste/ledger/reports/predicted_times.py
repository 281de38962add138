"""What was predicted of a job at its submission and while it ran, in the order of time: one table for text and page."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import UNSET

from gpuwaste.ledger.reports.report_types import JobDocument

SHOWN: Final = (("failure", "FAILURE"), ("timeout", "TIME LIMIT"), ("gpu_underused", "GPUS UNDER-USED"))
"""The probabilities that are shown, with what they are of."""
_MOMENTS: Final[Mapping[str, str]] = {
    "start": "at the start",
    "early": "10 minutes later",
    "limit": "before the time limit",
}
MOST: Final = 20


class PredictedAt(NamedTuple):
    """One moment of one run: when (UTC s), which, probabilities by target; the limit's are of that moment alone."""

    at: int
    printed_id: str
    moment: str
    p: Mapping[str, float]
    limit_p: float | None
    limit_at: int | None
    usual: bool

    def shown(self, target: str) -> float | None:
        """Return a probability, None where it is not known; before the limit that of reaching it from there on."""
        return self.limit_p if target == "timeout" and self.limit_p is not None else self.p.get(target)


def predicted_times(document: JobDocument) -> list[PredictedAt]:
    """Return the moments, the oldest first, MOST at most; none where nothing was predicted after the submission."""
    names = {(run.cluster, run.job_id): run.printed_id for run in document.runs}
    again = [
        PredictedAt(
            one.at,
            names.get((one.cluster, one.job_id), str(one.job_id)),
            _MOMENTS.get(one.moment, one.moment),
            one.p,
            one.limit_p,
            one.limit_at,
            one.usual,
        )
        for one in document.said_again
    ]
    if not again:
        return []
    first = [
        PredictedAt(one.at, document.printed_id, "at submission", one.p, None, None, usual=False)
        for one in document.advice
        if one.op == "submit" and one.p is not UNSET
    ]
    return sorted([*first, *again], key=_at)[:MOST]


def _at(one: PredictedAt) -> int:
    return one.at

"""The predictions for a job at its submission and while it ran, in order of time, for text and page."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import UNSET

from gpuwaste.ledger.reports.job_types import JobDocument, SaidAgain
from gpuwaste.show.layout import Look, bullet
from gpuwaste.show.terminal_cells import local_time, percent, uncut

SHOWN: Final = (("failure", "FAILURE"), ("timeout", "TIME LIMIT"), ("gpu_underused", "GPUS UNDER-USED"))
"""The probabilities that are shown, with their titles."""
_MOMENTS: Final[Mapping[str, str]] = {
    "start": "at the start",
    "early": "10 minutes later",
    "limit": "before the time limit",
}
MOST: Final = 20
_HEADERS: Final = ("AT", "WHEN", *(title for _, title in SHOWN))


class PredictedAt(NamedTuple):
    """One moment of one run: when (UTC s), which, probabilities by target; `again` is None at its submission."""

    at: int
    printed_id: str
    moment: str
    p: Mapping[str, float]
    again: SaidAgain | None = None

    def shown(self, target: str) -> float | None:
        """Return a probability, None if unknown; for the time limit that of reaching it from then on, if known."""
        limit_p = None if self.again is None else self.again.limit_p
        return limit_p if target == "timeout" and limit_p is not None else self.p.get(target)


def predicted_times(document: JobDocument) -> list[PredictedAt]:
    """Return the moments, the oldest first, at most MOST; none without predictions after the submission."""
    names = {(run.cluster, run.job_id): run.printed_id for run in document.runs}
    again = [
        PredictedAt(
            one.at,
            names.get((one.cluster, one.job_id), str(one.job_id)),
            _MOMENTS.get(one.moment, one.moment),
            one.p,
            one,
        )
        for one in document.said_again
    ]
    if not again:
        return []
    first = [
        PredictedAt(one.at, document.printed_id, "at submission", one.p)
        for one in document.advice
        if one.op == "submit" and one.p is not UNSET
    ]
    return sorted([*first, *again], key=_at)[:MOST]


def _at(one: PredictedAt) -> int:
    return one.at


def predicted_lines(document: JobDocument, look: Look) -> list[str]:
    """Return the probabilities at submission and after it, and whether the job will probably reach its limit."""
    found = predicted_times(document)
    if not found:
        return []
    several = len({one.printed_id for one in found}) > 1
    rows = [
        (
            local_time(one.at, look.zone),
            f"{uncut(one.printed_id)} {one.moment}" if several else one.moment,
            *(percent(one.shown(target)) for target, _ in SHOWN),
        )
        for one in found
    ]
    lines = [
        *look.heading("Predicted at submission and while the job ran"),
        *look.table(_HEADERS, rows, frozenset({0, 1})),
    ]
    for one in found:
        if one.again is not None and one.again.limit_p is not None:
            at, chance = local_time(one.again.limit_at, look.zone), percent(one.again.limit_p)
            usual = ", as all of the user's last jobs like it did" if one.again.usual else ""
            lines += bullet(
                f"job {one.printed_id} reaches its time limit at {at} with a probability of {chance}{usual}"
            )
    return lines

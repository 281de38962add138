"""What was predicted of a job while it ran, as a table of the job's report."""

from typing import Final

from gpuwaste.ledger.reports.predicted_times import SHOWN, PredictedAt, predicted_times
from gpuwaste.ledger.reports.report_types import JobDocument
from gpuwaste.show.cells import UNKNOWN, local_time, percent, uncut
from gpuwaste.show.layout import Look, bullet

_HEADERS: Final = ("AT", "WHEN", *(title for _, title in SHOWN))


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
        if one.limit_p is not None:
            lines += bullet(limit_words(one, local_time(one.limit_at, look.zone)))
    return lines


def limit_words(one: PredictedAt, at: str) -> str:
    """Say how likely a run is to reach its limit."""
    usual = ", as all of the user's last jobs like it did" if one.usual else ""
    chance = UNKNOWN if one.limit_p is None else percent(one.limit_p)
    return f"job {one.printed_id} reaches its time limit at {at} with a probability of {chance}{usual}"

"""The text of a plan: columns, times as one says them, and names that would break a terminal."""

from datetime import UTC

import pytest

from gpuwaste.core.fields import Interval
from gpuwaste.plan.plan_document import PlanCandidate, PlanDocument
from gpuwaste.plan.plan_text import clock, plan_text
from gpuwaste.show.layout import Look

NOW = 1_800_000_000  # Friday, 2027-01-15 08:00 UTC
DAY = 86400
LOOK = Look(zone=UTC)


def candidate(number: int, title: str, start: int, **fields: object) -> PlanCandidate:
    """Return a candidate that starts within a day of `start` and runs two days."""
    interval = Interval(p10=start, p50=start + 3600, p90=start + DAY)
    values: dict[str, object] = {
        "number": number, "kind": "x", "title": title, "options": [], "slurm_start": start + 9 * DAY, "start": interval,
        "end": Interval(p10=start + DAY, p50=start + 2 * DAY, p90=start + 3 * DAY), "gpu_hours": 192.0, "risk": 0.125,
    }  # fmt: skip
    return PlanCandidate(**{**values, **fields})  # type: ignore[arg-type]


def plan(*candidates: PlanCandidate, chosen: int | None = 1) -> PlanDocument:
    """Return a plan of these."""
    return PlanDocument(
        at=NOW, user="alice", name="train", script="job.sh", goal="fastest", chosen=chosen, candidates=list(candidates),
        notes=[],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (NOW, "08:00"),
        (NOW + DAY, "Sat 08:00"),
        (NOW + 9 * DAY, "24 Jan"),
        (NOW - DAY, "14 Jan"),
        (10**17, "-"),
        (None, "-"),
    ],
)
def test_times_are_said_as_slurm_says_relative_ones(at: int | None, said: str) -> None:
    """Today, within a week, later, before today, in no year that there is, and not known."""
    assert clock(at, NOW, UTC) == said


def test_wide_rows_keep_to_the_terminal() -> None:
    """Weekdays in each column and a long title are within 80 columns."""
    text = plan_text(plan(candidate(1, "as asked", NOW + DAY), candidate(2, "partition " + "x" * 200, NOW)), LOOK)
    assert all(len(line) <= 80 for line in text.splitlines()), text
    assert "Sat 08:00 to Sun 08:00" in text


def test_what_a_site_or_user_named_does_not_reach_the_terminal() -> None:
    """Escapes in titles, options, reasons and notes are shown, not obeyed."""
    evil = "\x1b[2J\r"
    bad = candidate(2, evil, NOW, status="invalid", reasons=[evil], options=[f"--partition={evil}"], text=evil)
    text = plan_text(plan(candidate(1, evil, NOW, needs=evil, waits=[evil]), bad), LOOK)
    assert "\x1b" not in text
    assert "\r" not in text


def test_a_plan_without_a_choice_says_so() -> None:
    """Nothing can be submitted: reasons, and no command."""
    text = plan_text(plan(candidate(1, "as asked", NOW, status="invalid", reasons=["too long"]), chosen=None), LOOK)
    assert "1, as asked: too long" in text
    assert "no candidate can be submitted" in text
    assert "        sbatch" not in text

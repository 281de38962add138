"""What `gpuwaste plan --watch` prints between two looks at a job."""

import pytest

from gpuwaste.plan.wait_watch import StartForecast, moved

NOW = 1_800_000_000
DOWN = "waits for nodes that are down or reserved"


def sight(minutes: int | None, reason: str = "Priority", before: int | None = 5) -> StartForecast:
    """Return a look at a job that starts in some minutes."""
    return StartForecast(NOW, "PENDING", reason, None if minutes is None else NOW + minutes * 60, None, before)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (sight(60), sight(60), ""),
        (sight(60), sight(64), ""),
        (sight(600), sight(630), ""),
        (sight(60), sight(90, before=8), "later: 3 more jobs ahead of it"),
        (sight(60), sight(90), "later: running jobs take longer than expected"),
        (sight(60), sight(20, before=4), "earlier: 1 job ahead of it started or left the queue"),
        (sight(60), sight(20), "earlier: running jobs ended sooner than expected"),
        (sight(60), sight(90, "QOSGrpGRES"), "later: waits for a limit of QOS, account or partition (QOSGrpGRES)"),
        (sight(60), sight(60, "Resources"), "now waits for free nodes (Resources)"),
        (sight(60), sight(None, "NodeDown"), f"start is no longer known: {DOWN} (NodeDown)"),
        (sight(None), sight(60), "start is known now"),
        (sight(60, before=None), sight(90, before=7), "later: running jobs take longer than expected"),
    ],
)  # fmt: skip
def test_a_line_says_what_moved_and_why(old: StartForecast, new: StartForecast, said: str) -> None:
    """Small moves are no line; a cause is Slurm's own reason first, then jobs ahead, then jobs that run."""
    assert moved(old, new) == said

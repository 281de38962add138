"""Which candidate serves a goal."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.plan.plan_document import GOALS, PlanCandidate, choose, meets

MAYBE = st.none() | st.integers(0, 1000)
CANDIDATE = st.fixed_dictionaries({
    "slurm_start": MAYBE, "run_s": MAYBE, "time_limit_s": MAYBE,
    "gpu_hours": st.none() | st.floats(0, 100), "risk": st.none() | st.floats(0, 1),
    "status": st.sampled_from(["valid", "invalid", "unchecked", "advice"]), "needs": st.sampled_from(["", "care"]),
})  # fmt: skip


def candidates(rows: list[dict[str, Any]]) -> list[PlanCandidate]:
    """Return the rows with numbers."""
    return [PlanCandidate(number=n, kind="x", title="x", options=[], **row) for n, row in enumerate(rows, 1)]


@given(st.lists(CANDIDATE, max_size=6), st.sampled_from(GOALS), MAYBE)
def test_nothing_better_is_left(rows: list[dict[str, Any]], goal: Any, deadline: int | None) -> None:
    """The choice is ready, keeps the deadline if any can, and no other that does is better by the goal's measure."""
    found = candidates(rows)
    ready = [one for one in found if one.status in {"valid", "unchecked"} and not one.needs]
    best = choose(found, goal, deadline)
    assert (best is None) == (not ready)
    if best is None:
        return
    assert best in ready
    if deadline is not None:
        assert meets(best, deadline) == any(meets(one, deadline) for one in ready)
        ready = [one for one in ready if meets(one, deadline)]
    measure = {"fastest": "expected_end", "cheapest": "gpu_hours", "safest": "risk"}[goal]
    known = [value for one in ready if (value := getattr(one, measure)) is not None]
    if known:
        assert getattr(best, measure) == min(known)

"""The wall clock that is set is told from one that runs, or is slewed."""

import pytest

from gpuwaste.core.clock import StepDetector

S = 1_000_000


@pytest.mark.parametrize(
    ("wall_s", "steady_s", "found"), [(10, 10, False), (11.5, 10, False), (-9, 10, True), (13, 10, True)]
)
def test_a_step_is_what_the_steady_clock_does_not_show(wall_s: float, steady_s: float, found: bool) -> None:
    """A difference of more than two seconds between two instants is a step, in both directions; a slew is none."""
    steps = StepDetector()
    assert not steps.stepped(100 * S, 0)
    assert steps.stepped(int((100 + wall_s) * S), int(steady_s * S)) is found
    assert not steps.stepped(int((101 + wall_s) * S), int((steady_s + 1) * S))


def test_after_forgetting_the_next_instant_is_a_first_one() -> None:
    """Samples of another boot have another steady clock: what lies between is no step."""
    steps = StepDetector()
    steps.stepped(100 * S, 9000 * S)
    steps.forget()
    assert not steps.stepped(160 * S, 5 * S)

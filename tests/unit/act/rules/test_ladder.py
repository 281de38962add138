"""The ladder: which step is due, what begins anew."""

from gpuwaste.act.rules.rule_file import rule_from_toml
from gpuwaste.act.rules.rule_ladder import Hold, Ladder, done, due, holding

TEXT = """where = "job.gpus > 0"
cooldown = "1d"
[[do]]
after = "30m"
action = "comment"
text = "a"
[[do]]
after = "1h"
action = "cancel"
"""
RULE = rule_from_toml(TEXT.encode(), "r.toml", "r")
MILD = rule_from_toml(TEXT.replace('"cancel"', '"comment"\ntext = "b"').encode(), "r.toml", "r")
EVENTS = rule_from_toml(('on = ["job.started"]\n' + TEXT).encode(), "r.toml", "r")


def test_steps_come_in_their_order_and_never_earlier_after_each_other() -> None:
    """A condition that held for a day when it was first seen: the first step, and the second half an hour later."""
    ladder = holding(RULE, None, 1000, gap=False)
    assert due(RULE, ladder, 1000, 86400.0) == 0
    ladder = done(ladder, 1000)
    assert due(RULE, ladder, 1060, 86460.0) is None
    assert due(RULE, ladder, 2800, 88200.0) == 1
    assert due(RULE, done(ladder, 2800), 9000, 90000.0) is None


def test_by_the_own_clock_a_condition_holds_through_observed_time_only() -> None:
    """A gap, or a clock that went back, begins anew."""
    ladder = holding(RULE, None, 1000, gap=False)
    assert due(RULE, holding(RULE, ladder, 2800, gap=False), 2800, None) == 0
    assert due(RULE, holding(RULE, ladder, 2800, gap=True), 2800, None) is None
    assert holding(RULE, ladder, 500, gap=False).began == 500


def test_the_cooldown_keeps_a_step_from_being_repeated() -> None:
    """What held, stopped and holds again goes on with the next step; after the cooldown it is another round."""
    ladder = Ladder(None, 1, 1000)
    assert holding(MILD, ladder, 2000, gap=False) == Ladder(2000, 1, 1000)
    assert holding(RULE, ladder, 1000 + 86400, gap=False) == Ladder(1000 + 86400, 0, 0, 1)


def test_a_ladder_at_its_end_begins_anew_after_the_cooldown() -> None:
    """A condition that still holds a day after the last step is a new round."""
    ladder = Ladder(0, 2, 1000)
    assert holding(RULE, ladder, 2000, gap=False) == ladder
    assert holding(RULE, ladder, 90000, gap=False) == Ladder(0, 0, 0, 1)


def test_before_a_step_that_cannot_be_undone_an_interruption_is_a_new_round() -> None:
    """By the own clock: it stopped to hold, or nobody looked. An event lasts no time: the next one is the next step."""
    ladder = Ladder(900, 1, 1000)
    assert holding(RULE, ladder, 2000, gap=False) == ladder
    assert holding(RULE, ladder, 2000, gap=True) == Ladder(2000, 0, 0, 1)
    assert holding(RULE, Ladder(None, 1, 1000), 2000, gap=False) == Ladder(2000, 0, 0, 1)
    assert holding(EVENTS, Ladder(None, 1, 1000), 2000, gap=False) == Ladder(2000, 1, 1000)
    assert holding(RULE, Ladder(None, 2, 1000), 2000, gap=False) == Ladder(2000, 2, 1000)  # cancelled already


def test_by_a_measured_time_an_interruption_is_seen_between_two_passes_too() -> None:
    """The job worked for a moment: less than the last step took, or since a later instant than that step."""
    ladder = Ladder(900, 1, 3000)
    assert holding(RULE, ladder, 4000, gap=False, hold=Hold(3100.0, 900)) == ladder
    assert holding(RULE, ladder, 4000, gap=False, hold=Hold(600.0, 3400)) == Ladder(900, 0, 0, 1)
    assert holding(RULE, ladder, 9000, gap=True, hold=Hold(2000.0, 7000)) == Ladder(9000, 0, 0, 1)
    # The agent was silent for a while, and what it sends then says that nothing was interrupted.
    assert holding(RULE, Ladder(None, 1, 3000), 4000, gap=False, hold=Hold(3100.0, 900)) == Ladder(4000, 1, 3000)

"""Ladder: the progress of a rule with one subject, and which step is due; the same live and in a replay."""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.rules.rule_definition import Rule

GAP_S: Final = 600  # between two passes: a longer gap was not observed, so that no condition has held through it


@dataclass(frozen=True, slots=True)
class Ladder:
    """`began` is when the condition began to hold, UTC seconds, None if it does not; `step` counts the steps done."""

    began: int | None
    step: int = 0
    step_utc: int = 0  # when the last of them was done
    round: int = 0  # how often the ladder started again


class Hold(NamedTuple):
    """For how long, and since which UTC second, a condition has held by the fact `since`; None: by the own clock."""

    seconds: float | None = None
    since_utc: int = 0


OWN_CLOCK: Final = Hold()


def holding(rule: Rule, before: Ladder | None, now: int, *, gap: bool, hold: Hold = OWN_CLOCK) -> Ladder:
    """Return the ladder of a subject for which the condition holds now; `gap`: the time before was not observed.

    If the condition was interrupted, a ladder that still has a step that waits for a warning starts a new round, even
    within the cooldown: a user who was warned and resumed work is warned again before their job is cancelled.
    """
    if before is None:
        return Ladder(now)
    began = before.began
    if began is None or gap or began > now:
        began = now
    interrupted = before.began is None
    over = before.step and now - before.step_utc >= rule.head.cooldown
    if over and (interrupted or before.step >= len(rule.steps)):
        return Ladder(began, round=before.round + 1)
    if before.step and _broken(rule, before, began, hold) and _final_to_come(rule, before):
        return Ladder(began, round=before.round + 1)
    return before if began == before.began else replace(before, began=began)


def kept(rule: Rule, before: Ladder) -> Ladder:
    """Return the ladder of a subject while it is kept: once that is over, a new round begins.

    A rule with a step that cannot be undone begins with its first step, whatever the fact `since` says: who was warned
    before the keep is warned again. Other rules go on, or each keep would repeat their mails.
    """
    if before.step and any(actions()[step.action].final for step in rule.steps):
        return Ladder(None, 0, before.step_utc, before.round + 1)
    return replace(before, began=None)


def unbroken(rule: Rule, hold: Hold, number: int, at: int) -> bool:
    """Return whether, by the fact `since`, the condition has held since a step was due at an instant."""
    return hold.seconds is None or (hold.seconds >= rule.steps[number].after_s and hold.since_utc <= at)


def _broken(rule: Rule, before: Ladder, began: int, hold: Hold) -> bool:
    """Return whether the condition did not hold, or was not observed, for a while since the last step was done."""
    if hold.seconds is not None:
        return not unbroken(rule, hold, before.step - 1, before.step_utc)
    return rule.periodic and began != before.began  # an event has no duration: the next one is the next step


def _final_to_come(rule: Rule, ladder: Ladder) -> bool:
    return any(actions()[step.action].warned for step in rule.steps[ladder.step :])


def due(rule: Rule, ladder: Ladder, now: int, held_s: float | None) -> int | None:
    """Return the number of the due step, None for none. `held_s` is the fact `since`, None: the ladder's own clock.

    The time between two steps is never shorter than in the file: a rule that is new, or that begins to act, does not
    start with its last step.
    """
    if ladder.began is None or ladder.step >= len(rule.steps):
        return None
    own_s = now - ladder.began
    if (own_s if held_s is None else held_s) < rule.steps[ladder.step].after_s:
        return None
    if ladder.step:
        between = rule.steps[ladder.step].after_s - rule.steps[ladder.step - 1].after_s
        if now - ladder.step_utc < between:
            return None
    return ladder.step


def done(ladder: Ladder, now: int) -> Ladder:
    """Return the ladder after its next step."""
    return replace(ladder, step=ladder.step + 1, step_utc=now)

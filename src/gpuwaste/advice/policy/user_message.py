"""The lines at the user's terminal, at most three: why in the user's own numbers, what to change, where to read more.

Names of jobs are written by users: every character that a terminal may act on becomes `?`, and lines are cut.
"""

from typing import TYPE_CHECKING, Final

from gpuwaste.core.text import masked
from gpuwaste.core.units import say_percent
from gpuwaste.jobs.verdict import MAX_LINE, MAX_LINES, TOLD, Action

if TYPE_CHECKING:
    from gpuwaste.advice.policy.policy_case import PolicyCase, Trigger

PREFIX: Final = "gpuwaste: "
OVERRIDE: Final = "resubmit with --comment=gpuwaste:override=REASON"
_CUT: Final = "..."
_SBATCH: Final = "#SBATCH "
_MAX_READ: Final = 4 * MAX_LINE  # of a text of any length
_WHAT: Final = {
    "failure": "this job will probably fail",
    "timeout": "this job will probably reach its time limit",
    "failure_or_cancel": "this job will probably fail or be cancelled",
    "gpus": "this job probably needs fewer than the {gpus} requested GPUs",
    "memory": "this job probably needs far less memory than requested",
    "walltime": "this job will probably end long before its time limit",
}
_LIKELY: Final = 0.5
_PERHAPS: Final = (("will probably", "may"), ("probably needs", "may need"))
"""For an estimate of less than half, such as 40 % with a threshold of 30 %."""
_ADVICE: Final = {
    "failure": "see how your last jobs ended: gpuwaste report",
    "timeout": "request more with --time, or save checkpoints and resume in another job",
    "failure_or_cancel": "see how your last jobs ended: gpuwaste report",
    "gpus": "request fewer GPUs; what your jobs used: gpuwaste report",
    "memory": "request less with --mem",
    "walltime": "request less with --time",
}


def lines_of(case: "PolicyCase") -> tuple[str, ...]:
    """Return the lines for the case's action, else those for its would_be; none where nothing triggered."""
    action = case.action if case.action in TOLD else case.would_be
    triggers = sorted(case.triggers, key=lambda trigger: trigger.action != "reject")
    if action not in TOLD or not triggers:
        return ()
    found = [*_reason_lines(case, action, triggers[0]), _how(case, action, triggers[0])]
    if case.facts.last_job is not None and len(found) < MAX_LINES:
        found.append(line(f"details: gpuwaste job {case.facts.last_job}"))
    return tuple(found)


def line(text: str, room: int = MAX_LINE) -> str:
    """Return a line with the prefix, without unsafe characters, at most `room` characters long."""
    return _fit(PREFIX + " ".join(masked(text[:_MAX_READ]).split()), room)


def _fit(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(0, room - len(_CUT))] + _CUT


def _reason_lines(case: "PolicyCase", action: Action, trigger: "Trigger") -> list[str]:
    """Return what is expected and why: in one line where there is room and a line for the details.

    What the user's own earlier jobs did is a fact and needs no estimate.
    """
    rejected = f"rejected by policy {case.policy.name}: " if action == "reject" else ""
    why = trigger.why[0] if trigger.why else ""
    if why and trigger.expectation.source == "history":
        return [line(rejected + why)]
    what = _WHAT[trigger.target].format(gpus=case.facts.request.gpus)
    if trigger.expectation.p is not None and trigger.expectation.source != "history":
        for likely, perhaps in _PERHAPS if trigger.value < _LIKELY else ():
            what = what.replace(likely, perhaps)
        what = f"{what} (estimated {say_percent(trigger.value)})"
    both = f"{rejected}{what}; {why}" if why else rejected + what
    if not why or (case.facts.last_job is not None and len(PREFIX) + len(both) <= MAX_LINE):
        return [line(both)]
    return [line(rejected + what), line(why)]


def _how(case: "PolicyCase", action: Action, trigger: "Trigger") -> str:
    """Return the option to change; for a reject the override, which is never cut."""
    rule = case.policy.override
    if action != "reject" or not rule.allowed or not rule.per_user_per_day:
        end = ""
    elif case.overrides_used:
        end = f" (your {rule.per_user_per_day} overrides of today are used up)"
    else:
        end = f", or {OVERRIDE}"
    return _advice(trigger, MAX_LINE - len(end)) + end


def _advice(trigger: "Trigger", room: int) -> str:
    """Return the option uncut, since it is copied; where it does not fit, name only the option."""
    if (suggestion := trigger.suggestion) is not None:
        text = f"use {suggestion.option.removeprefix(_SBATCH)}"
        if len(PREFIX) + len(text) <= room:
            return line(text, room)
    return line(_ADVICE[trigger.target], room)

"""The lines at the user's terminal, at most three: what, why in the user's own numbers, and the option to change.

Names of jobs are written by users: every character that a terminal may act on becomes `?`, and lines are cut.
"""

from typing import TYPE_CHECKING, Final

from gpuwaste.core.text import masked
from gpuwaste.jobs.verdict import MAX_LINE, TOLD, Action

if TYPE_CHECKING:
    from gpuwaste.advice.policy.policy_case import PolicyCase, Trigger

PREFIX: Final = "gpuwaste: "
OVERRIDE: Final = "resubmit with --comment=gpuwaste:override=REASON"
_CUT: Final = "..."
_SBATCH: Final = "#SBATCH "
_MAX_READ: Final = 4 * MAX_LINE  # of a text of any length
_WHAT: Final = {
    "failure": "this job likely fails",
    "timeout": "this job likely runs into its time limit",
    "failure_or_cancel": "this job likely fails or is cancelled",
    "gpus": "this job likely needs fewer than the {gpus} GPUs that it asks for",
    "memory": "this job likely needs far less memory than it asks for",
    "walltime": "this job likely ends long before its time limit",
}
_ADVICE: Final = {
    "failure": "see how your last jobs ended: gpuwaste report",
    "timeout": "ask for more with --time, or save checkpoints and resume in another job",
    "failure_or_cancel": "see how your last jobs ended: gpuwaste report",
    "gpus": "ask for fewer GPUs; what your jobs used: gpuwaste report",
    "memory": "ask for less with --mem",
    "walltime": "ask for less with --time",
}


def lines_of(case: "PolicyCase") -> tuple[str, ...]:
    """Return the lines for the case's action, else those for its would_be; none where nothing triggered."""
    action = case.action if case.action in TOLD else case.would_be
    triggers = sorted(case.triggers, key=lambda trigger: trigger.action != "reject")
    if action not in TOLD or not triggers:
        return ()
    found = (_what(case, action, triggers[0]), _why(triggers[0]), _how(case, action, triggers[0]))
    return tuple(line for line in found if line)


def line(text: str, room: int = MAX_LINE) -> str:
    """Return a line with the prefix, without unsafe characters, at most `room` characters long."""
    return _fit(PREFIX + " ".join(masked(text[:_MAX_READ]).split()), room)


def _fit(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(0, room - len(_CUT))] + _CUT


def _what(case: "PolicyCase", action: Action, trigger: "Trigger") -> str:
    what = _WHAT[trigger.target].format(gpus=case.facts.request.gpus)
    if trigger.expectation.p is not None and trigger.expectation.source != "history":
        what = f"{what} (estimated {trigger.value:.0%})"
    return line(f"rejected by policy {case.policy.name}: {what}" if action == "reject" else what)


def _why(trigger: "Trigger") -> str:
    return line(trigger.why[0]) if trigger.why else ""


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

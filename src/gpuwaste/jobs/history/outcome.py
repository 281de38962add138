"""How a run ended, in the classes that labels and history use (CONTRACTS.md, "Failure labels")."""

from enum import IntEnum
from typing import Final

from gpuwaste.core.job_states import SYSTEM


class Outcome(IntEnum):
    """The class of an end; the numbers are stored in packed state and must not change within a feature version."""

    UNKNOWN = 0  # not ended, or the log has no status
    COMPLETED = 1
    FAILED = 2
    OUT_OF_MEMORY = 3
    TIMEOUT = 4
    CANCELLED = 5  # after its start
    SYSTEM = 6  # job_states.SYSTEM: not a result of the job
    NEVER_STARTED = 7  # cancelled before its start


_STATE: Final = {
    Outcome.UNKNOWN: "",
    Outcome.COMPLETED: "COMPLETED",
    Outcome.FAILED: "FAILED",
    Outcome.OUT_OF_MEMORY: "OUT_OF_MEMORY",
    Outcome.TIMEOUT: "TIMEOUT",
    Outcome.CANCELLED: "CANCELLED",
    Outcome.SYSTEM: "NODE_FAIL",  # represents all of them
    Outcome.NEVER_STARTED: "CANCELLED",
}
_OWN: Final = (Outcome.COMPLETED, Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.TIMEOUT)
_BY_STATE: Final = {_STATE[outcome]: outcome for outcome in _OWN} | dict.fromkeys(SYSTEM, Outcome.SYSTEM)


def state_of(outcome: Outcome) -> str:
    """Return one of Slurm's final states of the class; "" for UNKNOWN."""
    return _STATE[outcome]


def outcome_of(state: str, *, started: bool) -> Outcome:
    """Return the class of one of Slurm's final states; any other state, or "", is UNKNOWN."""
    if state == "CANCELLED":
        return Outcome.CANCELLED if started else Outcome.NEVER_STARTED
    return _BY_STATE.get(state, Outcome.UNKNOWN)

"""Job states as Slurm names them: the only table of their meanings (squeue(1), JOB STATE CODES; sacct(1)).

States are those of accounting and of jobs in slurmctld's memory. Queries write the sets that SETS names as
`state IN {failed_states}` (store/database.py).
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Phase = Literal["waits", "holds", "ended"]
"""Whether a job waits for its nodes, has them, or had them (REQUEUED: the run ended, its job waits again)."""
Blame = Literal["", "job", "site"]
"""The cause of a bad end: the job itself, or the site (hardware, preemption, an administrator)."""


class JobState(NamedTuple):
    """The meaning of one state; `code` is squeue's."""

    code: str
    phase: Phase
    blame: Blame = ""


STATES: Final[Mapping[str, JobState]] = {
    "PENDING": JobState("PD", "waits"),
    "CONFIGURING": JobState("CF", "waits"),
    "REQUEUE_HOLD": JobState("RH", "waits"),
    "SPECIAL_EXIT": JobState("SE", "waits"),
    "RUNNING": JobState("R", "holds"),
    "SUSPENDED": JobState("S", "holds"),
    "STOPPED": JobState("ST", "holds"),
    "COMPLETING": JobState("CG", "holds"),
    "COMPLETED": JobState("CD", "ended"),
    "CANCELLED": JobState("CA", "ended"),
    "FAILED": JobState("F", "ended", "job"),
    "OUT_OF_MEMORY": JobState("OOM", "ended", "job"),
    "TIMEOUT": JobState("TO", "ended"),
    "NODE_FAIL": JobState("NF", "ended", "site"),
    "BOOT_FAIL": JobState("BF", "ended", "site"),
    "PREEMPTED": JobState("PR", "ended", "site"),
    "REQUEUED": JobState("RQ", "ended", "site"),
    "DEADLINE": JobState("DL", "ended", "site"),
    "REVOKED": JobState("RV", "ended", "site"),
}


def _of(phase: Phase) -> frozenset[str]:
    return frozenset(name for name, state in STATES.items() if state.phase == phase)


ENDED: Final = _of("ended")
HOLDING: Final = _of("holds")
"""States in which a job has its nodes."""
WAITING: Final = _of("waits")
QUEUED: Final = WAITING | {"REQUEUED"}
"""States in which squeue lists a job that waits."""
FAILED: Final = frozenset(name for name, state in STATES.items() if state.blame == "job")
"""The job's own failures, as labels count them."""
SYSTEM: Final = frozenset(name for name, state in STATES.items() if state.blame == "site")
"""Ends that are not a result of the job."""
NODE_FAILED: Final = frozenset({"NODE_FAIL", "BOOT_FAIL"})
SETS: Final[Mapping[str, frozenset[str]]] = {"failed_states": FAILED, "node_failed_states": NODE_FAILED}
"""Sets that queries use, by their names in queries."""

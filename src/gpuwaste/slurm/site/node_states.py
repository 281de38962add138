"""Whether slurmctld starts jobs on a node in a given state: the one rule, with the reason for each state.

States are read as `scontrol show node` prints them (`IDLE+CLOUD+POWERED_DOWN`), as sinfo and slurmdbd do (`down*`,
`idle~`), and as slurm.conf writes them (`State=UNKNOWN`).
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

_WORDS: Final = re.compile(r"[A-Z_]+|[*~#!%@^]")
_LONGEST: Final = 512  # characters of a state; slurmctld prints a hundred at most

UNUSABLE: Final[Mapping[str, str]] = {
    "DOWN": "failed, or set down by an administrator",
    "DRAIN": "takes no new job until it is resumed",
    "DRAINED": "DRAIN without a job",
    "DRAINING": "DRAIN with jobs that still run",
    "DRNG": "DRAINING as sinfo and sacctmgr print it",
    "ERROR": "a part of the node failed (older versions of Slurm)",
    "FAIL": "expected to fail soon, takes no new job",
    "FAILG": "FAILING as sinfo and sacctmgr print it",
    "FAILING": "FAIL with jobs that still run",
    "FUTR": "FUTURE as sinfo and sacctmgr print it",
    "FUTURE": "defined in slurm.conf, not installed yet",
    "INVAL": "slurmd registered with less than in slurm.conf",
    "INVALID_REG": "INVAL as scontrol prints it",
    "PERFCTRS": "its counters are held by another program",
}
"""States in which a node gets no job, and why."""

SILENT: Final[Mapping[str, str]] = {
    "NOT_RESPONDING": "slurmd does not answer: no job is started there",
    "*": "NOT_RESPONDING as sinfo prints it",
}
"""States in which a node gets no job unless it is expected not to answer (RETURNS)."""

RETURNS: Final[Mapping[str, str]] = {
    "CLOUD": "may be powered off; is started for a job",
    "POWERED_DOWN": "powered off; is started for a job",
    "POWER_DOWN": "will be powered off; is started again for a job",
    "POWERING_DOWN": "is being powered off; is started again for a job",
    "POWERING_UP": "is being started",
    "POWER_UP": "is being started",
    "~": "POWERED_DOWN as sinfo prints it",
    "!": "POWER_DOWN as sinfo prints it",
    "%": "POWERING_DOWN as sinfo prints it",
    "#": "POWERING_UP as sinfo prints it",
    "REBOOT_ISSUED": "reboots now",
    "^": "REBOOT_ISSUED as sinfo prints it",
}
"""States in which slurmd is expected not to answer for a while, and the node returns without an administrator."""

USABLE: Final[Mapping[str, str]] = {
    "IDLE": "free",
    "MIXED": "has jobs and free resources",
    "ALLOCATED": "full until a job ends",
    "COMPLETING": "its last job is being cleaned up",
    "PLANNED": "reserved for a pending job until the next pass of the backfill scheduler",
    "RESERVED": "in a reservation: only its users' jobs, only at its times",
    "MAINT": "in a maintenance reservation: no jobs at its times",
    "BLOCKED": "an exclusive job holds this part of the topology",
    "REBOOT_REQUESTED": "reboots once its jobs have ended",
    "@": "REBOOT_REQUESTED as sinfo prints it",
    "UNKNOWN": "not registered since slurmctld started, and not set down",
}
"""States that do not keep jobs away. A state in none of these tables is treated as one of them."""


@lru_cache(maxsize=1024)
def is_usable(state: str) -> bool:
    """Return whether slurmctld starts jobs on a node in this state, now or once the jobs on it have ended."""
    words = set(_WORDS.findall(state[:_LONGEST].upper()))
    return not words & UNUSABLE.keys() and not (words & SILENT.keys() and not words & RETURNS.keys())

"""Slurm's hierarchy of limits: which QOS a job has, which QOS takes precedence, and which of several limits applies.

slurm.schedmd.com/resource_limits.html and slurmctld's acct_policy.c: the partition's QOS is checked before the job's
(the other way round with OverPartQOS), then the association, then the accounts above it. A limit that one of the QOS
sets is not checked further down. A group limit (Grp...) applies at the association and at each account above; a limit
of a job, a node or the user's jobs only at the association, which inherits that of the nearest account if it sets none.
"""

from collections.abc import Collection
from typing import Final, TypeVar

T = TypeVar("T")
NO_LIMIT: Final = float("inf")
_OVER_PARTITION: Final = "overpartqos"
_USUAL: Final = "normal"


def default_qos(own: str, allowed: Collection[str]) -> str:
    """Return the QOS of a job that names none: its association's default, or the only one allowed, else `normal`."""
    return own or (next(iter(allowed)) if len(allowed) == 1 else _USUAL)


def qos_order(job: T, partition: T, none: T, flags: Collection[str]) -> tuple[T, T]:
    """Return the QOS of a job and of its partition, the stronger first and each once; `none` means no QOS.

    `flags` are those of the job's QOS, as sacctmgr prints them.
    """
    if none in (job, partition) or job == partition:
        return (partition if job == none else job), none
    over = any(flag.lower() == _OVER_PARTITION for flag in flags)
    return (job, partition) if over else (partition, job)


def holds(limit: float, first: float, second: float) -> bool:
    """Return whether a limit applies, given those of the same kind that the stronger and the weaker QOS set.

    NO_LIMIT means none. For a limit of the stronger QOS itself both are NO_LIMIT, for one of the weaker QOS
    `second` is. The simulator compiles this function.
    """
    return limit < NO_LIMIT and first == NO_LIMIT and second == NO_LIMIT

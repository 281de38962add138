"""Settings of slurmctld that a run takes over from the site, and those that the faster clock needs.

slurmctld computes in real time while its clock runs `speed` times faster: what bounds its computing is stretched by
that factor, so that a cycle is not cut that would have ended on the site. What bounds its scheduling (intervals,
windows, depths) is the site's.
"""

import re
from collections.abc import Mapping
from typing import Final

from gpuwaste.core.errors import ConfigError

TAKEN: Final = (
    "SchedulerType",
    "SchedulerParameters",
    "SelectType",
    "SelectTypeParameters",
    "PriorityType",
    "PriorityFavorSmall",
    "PriorityFlags",
    "PriorityMaxAge",
    "PriorityCalcPeriod",
    "PriorityWeightAge",
    "PriorityWeightJobSize",
    "PriorityWeightPartition",
    "PreemptType",
    "PreemptMode",
    "PreemptExemptTime",
    "DefMemPerNode",
    "DefMemPerCPU",
    "MaxMemPerNode",
    "MaxMemPerCPU",
    "OverTimeLimit",
    "KillWait",
    "CompleteWait",
    "EnforcePartLimits",
    "JobRequeue",
)
_ABSENT: Final = frozenset({"", "(null)", "n/a", "none", "unlimited"})
_UNIT: Final = re.compile(r"(\d+) (?:sec|min|MB|bytes)")
_VALUE: Final = re.compile(r"[A-Za-z0-9_./:,=+*;@-]+")
_DIGITS: Final = 9
_SCHEDULER: Final = "SchedulerParameters"
_LONGEST: Final = 4000
_OF_USERS: Final = ("bf_max_job_user", "bf_max_job_user_part", "bf_max_job_assoc", "max_array_tasks")
_BF_TIME_S: Final = 3600  # the most that slurm.conf(5) allows of bf_max_time
_BF_YIELD_US: Final = 10_000_000  # of bf_yield_interval
_DEFAULT_YIELD_US: Final = 2_000_000
_DEFAULT_INTERVAL_S: Final = 30
_DEFAULT_SCHED_S: Final = 2


def taken_settings(settings: Mapping[str, str], speed: int) -> dict[str, str]:
    """Return what slurm.conf has of the site's settings, by name. Raises ConfigError for a value that is no value."""
    given = {name.lower(): (name, value) for name, value in settings.items()}
    taken = {}
    for name in TAKEN:
        _, value = given.get(name.lower(), (name, ""))
        value = _plain(name, value)
        if value:
            taken[name] = value
    if taken.get("PriorityType") == "priority/multifactor":
        taken["PriorityWeightFairshare"] = taken["PriorityWeightQOS"] = "0"
    if taken.get("PreemptType") == "preempt/qos":
        del taken["PreemptType"]
        taken.pop("PreemptMode", None)
    taken[_SCHEDULER] = scheduler_parameters(taken.get(_SCHEDULER, ""), speed)
    return taken


def not_taken(settings: Mapping[str, str]) -> list[str]:
    """Return sentences on settings of the site that a run does not have."""
    given = {name.lower(): value for name, value in settings.items()}
    said = []
    if given.get("prioritytype") == "priority/multifactor":
        said.append("Priority has no fair share, QOS and TRES factor.")
    if given.get("preempttype") == "preempt/qos":
        said.append("Preemption by QOS is off.")
    if any(name in given.get("schedulerparameters", "") for name in _OF_USERS[:3]):
        said.append("bf_max_job_user, bf_max_job_user_part and bf_max_job_assoc are off: all jobs have one user.")
    return said


def scheduler_parameters(text: str, speed: int) -> str:
    """Return SchedulerParameters for a clock that runs `speed` times faster."""
    given = dict(_pair(word) for word in text.split(",") if word)
    for name in _OF_USERS:
        given.pop(name, None)
    interval = _number(given.get("bf_interval"), _DEFAULT_INTERVAL_S)
    given["bf_max_time"] = str(min(_BF_TIME_S, _number(given.get("bf_max_time"), interval) * speed))
    yielded = _number(given.get("bf_yield_interval"), _DEFAULT_YIELD_US)
    given["bf_yield_interval"] = str(min(_BF_YIELD_US, yielded * speed))
    given["max_sched_time"] = str(_number(given.get("max_sched_time"), _DEFAULT_SCHED_S) * speed)
    return ",".join(f"{name}={value}" if value else name for name, value in given.items())


def _plain(name: str, value: str) -> str:
    """Return a value as slurm.conf has it: `scontrol show config` adds units and words for nothing."""
    value = value.strip()
    if unit := _UNIT.fullmatch(value):
        value = unit[1]
    if value.lower() in _ABSENT:
        return ""
    if len(value) > _LONGEST or not _VALUE.fullmatch(value):
        raise ConfigError(
            f"{name}={value[:60]!r}: not a value of slurm.conf: correct it in the description of the machine"
        )
    return value


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def _number(text: str | None, default: int) -> int:
    known = text is not None and text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    return max(1, int(text)) if text is not None and known else default

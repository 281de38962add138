"""Texts of slurm.conf, gres.conf and cgroup.conf for a ClusterModel whose nodes are all on this host.

Each node is a slurmd of its own (`slurmd -N NAME`) with a port of its own. GPUs are plain files: nothing opens them.
See slurm.conf(5) and gres.conf(5) of Slurm 22.05 and later.

slurmctld computes in real time while its clock runs `speed` times faster: limits of its computing time are stretched
by that factor, so that no cycle is cut that would have ended on the site. Limits of its scheduling (intervals,
windows, depths) are the site's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.units import MINUTE_S
from gpuwaste.slurm.formats.list_conf import no_cgroups, release_of
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition

MAX_NODES: Final = 2000  # each is a process
_MIB: Final = 1 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}")
_CRED_EXPIRE_S: Final = 120  # Slurm's default; a requeued job waits that long
_LAUNCH_S: Final = 30  # real seconds in which a loaded host starts a job
_HASTE_S: Final = 60  # real seconds that daemons wait for each other
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


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run's daemons are: a private directory, the users' name, the ports of slurmctld and of each node."""

    directory: Path
    user: str
    controller_port: int
    node_ports: tuple[int, ...]


def slurm_conf(model: ClusterModel, place: Place, speed: int, *, jobs: int, memory: bool) -> str:
    """Return slurm.conf for a clock that runs `speed` times faster; `memory`: jobs request memory.

    Raises ConfigError for names that slurm.conf cannot have and for more nodes than one host can play.
    """
    if not 1 <= len(model.nodes) <= MAX_NODES:
        raise ConfigError(
            f"{model.name[:40]}: {len(model.nodes)} nodes: the engine simulates 1 to {MAX_NODES}, with one slurmd each"
        )
    settings = {**_defaults(memory=memory), **taken_settings(model.settings, speed)}
    if settings["SelectType"] == "select/linear":
        settings.pop("SelectTypeParameters")
    lines = [f"{key}={value}" for key, value in {**_fixed(model, place, speed, jobs), **settings}.items()]
    lines += [_node(node, port) for node, port in zip(model.nodes, place.node_ports, strict=True)]
    lines += [_partition(partition) for partition in model.partitions]
    return "\n".join(lines) + "\n"


def gres_conf(model: ClusterModel, place: Place) -> str:
    """Return gres.conf: a line for each type of GPU of each node; files are those of `gpu_files`."""
    lines = ["AutoDetect=off"]
    for node in model.nodes:
        first = 0
        for kind, count in sorted(node.gpus.items()):
            if count:
                typed = f" Type={_name(kind, 'GPU type')}" if kind else ""
                files = f"{place.directory}/gpu/[{first}-{first + count - 1}]"
                lines.append(f"NodeName={node.name} Name=gpu{typed} File={files}")
                first += count
    return "\n".join(lines) + "\n"


def gpu_files(model: ClusterModel) -> int:
    """Return how many files represent GPUs: those of the node with the most; all nodes share them."""
    return max(node.gpu_count for node in model.nodes)


def cgroup_conf(version: str) -> str:
    """Return cgroup.conf: the virtual nodes use no cgroup."""
    plugin = no_cgroups(release_of(version))
    return f"CgroupPlugin={plugin}\nConstrainCores=no\nConstrainRAMSpace=no\nConstrainDevices=no\n"


def cred_expire_s(model: ClusterModel, speed: int) -> int:
    """Return how long a job's credential is valid on the played clock, seconds.

    slurmctld lets a requeued job wait that long, so it stays Slurm's own where jobs can be requeued; elsewhere it is as
    long as a loaded host may take to start a job.
    """
    requeues = bool(model.outages) or model.settings.get("PreemptType", "preempt/none") not in {"", "preempt/none"}
    return _CRED_EXPIRE_S if requeues else max(_CRED_EXPIRE_S, _LAUNCH_S * speed)


def _fixed(model: ClusterModel, place: Place, speed: int, jobs: int) -> dict[str, str]:
    base, haste = place.directory, str(_HASTE_S * speed)
    return {
        "ClusterName": "engine",
        "SlurmctldHost": "localhost(127.0.0.1)",
        "SlurmctldPort": str(place.controller_port),
        "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={base}/munge/s,cred_expire={cred_expire_s(model, speed)}",
        "CredType": "cred/munge",
        "SlurmUser": place.user,
        "SlurmdUser": place.user,
        "StateSaveLocation": f"{base}/state",
        "SlurmdSpoolDir": f"{base}/spool/%n",
        "SlurmctldPidFile": f"{base}/slurmctld.pid",
        "SlurmdPidFile": f"{base}/spool/%n.pid",
        "SlurmctldLogFile": f"{base}/log/slurmctld.log",
        "SlurmdLogFile": f"{base}/log/slurmd.log",
        "SlurmctldDebug": "debug",  # with the two below, the log shows when slurmctld did what: see instants.py
        "DebugFlags": "Backfill,TraceJobs,Hetjob",
        "LogTimeFormat": "iso8601_ms",
        "SlurmdDebug": "error",
        "MailProg": "/bin/true",
        "MpiDefault": "none",
        "ProctrackType": "proctrack/pgid",
        "TaskPlugin": "task/none",
        "SwitchType": "switch/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": f"{base}/jobcomp.txt",
        "SlurmdParameters": "config_overrides",
        "ReturnToService": "1",  # a node that is down by the model stays down
        "SlurmdTimeout": "0",
        "InactiveLimit": "0",
        "MessageTimeout": haste,
        "TCPTimeout": haste,
        "BatchStartTimeout": haste,
        "UnkillableStepTimeout": haste,
        "MaxJobCount": str(jobs + 10_000),
        "TreeWidth": str(max(2, len(model.nodes))),
        "GresTypes": "gpu",
    }


def _defaults(*, memory: bool) -> dict[str, str]:
    return {
        "SchedulerType": "sched/backfill",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU_Memory" if memory else "CR_CPU",
        "PriorityType": "priority/basic",
    }


def _node(node: Node, port: int) -> str:
    gres = ",".join(
        f"gpu:{_name(kind, 'GPU type')}:{count}" if kind else f"gpu:{count}"
        for kind, count in sorted(node.gpus.items())
        if count
    )
    words = [
        f"NodeName={_name(node.name, 'node name')} NodeHostName=localhost NodeAddr=127.0.0.1 Port={port}",
        f"CPUs={node.cpus} RealMemory={max(1, node.memory_b // _MIB)} Weight={node.weight}",
        *([f"Gres={gres}"] if gres else []),
        *([f"Feature={','.join(_name(each, 'feature') for each in sorted(node.features))}"] if node.features else []),
        f"State={'DOWN' if node.down else 'UNKNOWN'}",
    ]
    return " ".join(words)


def _partition(partition: Partition) -> str:
    words = [
        f"PartitionName={_name(partition.name, 'partition name')}",
        f"Nodes={','.join(_name(each, 'node name') for each in partition.nodes)}",
        f"Default={_yes(partition.default)} State={'UP' if partition.up else 'DOWN'}",
        f"MaxTime={_minutes(partition.max_time_s)} MinNodes={partition.min_nodes}",
        f"PriorityTier={partition.priority_tier} PriorityJobFactor={partition.priority_job_factor}",
        f"OverSubscribe={'EXCLUSIVE' if partition.whole_nodes else 'NO'}",
    ]
    if partition.default_time_s is not None:
        words.append(f"DefaultTime={_minutes(partition.default_time_s)}")
    if partition.max_nodes is not None:
        words.append(f"MaxNodes={partition.max_nodes}")
    if partition.preempt_mode is not None:
        words.append(f"PreemptMode={partition.preempt_mode.upper()}")
    return " ".join(words)


def _name(text: str, what: str) -> str:
    if not _NAME.fullmatch(text):
        raise ConfigError(f"{what} {text[:60]!r}: not allowed in slurm.conf")
    return text


def _minutes(seconds: int | None) -> str:
    return "UNLIMITED" if seconds is None else str(-(-seconds // MINUTE_S))


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def taken_settings(settings: Mapping[str, str], speed: int) -> dict[str, str]:
    """Return the site's settings that slurm.conf takes over, by name. Raises ConfigError for an invalid value."""
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
    """Return a value as slurm.conf writes it: `scontrol show config` adds units, and words for empty values."""
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

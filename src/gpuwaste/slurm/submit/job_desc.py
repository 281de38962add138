"""A submission as a submit plugin sees it (job_desc_msg_t of slurm.h, as JSON): the request and fields for policies.

The names are the structure's members; unset members are left out. Amounts are computed as sbatch_amounts does for the
same job's options. A value of a wrong type, or out of range, counts as left out: the submitting user chooses most of
these texts, and none of them may keep the advisor from answering.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import decoded
from gpuwaste.core.units import MINUTE_S
from gpuwaste.slurm.submit.gpu_items import RequestedGpus, Settled, counted, cpus_by_gpus, cpus_of, gpu_items, settle
from gpuwaste.slurm.submit.job_request import JobRequest

_HASH: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_AMOUNT: Final = re.compile(r"[:=](\d{1,15})$", re.ASCII)
_TASK_CPUS: Final = re.compile(r"(?:^|,)cpu[:=](\d{1,9})", re.ASCII)
_LARGEST: Final = (1 << 31) - 1  # of a count: far above any cluster; Slurm's own "not set" is above it
_LARGEST_MB: Final = 1 << 42
_LONGEST: Final = 4096
_LONGEST_SCRIPT: Final = 64 * 1024
_MIB: Final = 1 << 20
_INFINITE: Final = "infinite"


@dataclass(slots=True)
class JobDesc:
    """One submission or modification; a text that is not given is "", a number None.

    `asked` has neither user nor submit time, and perhaps only the beginning of the script; `script_hash` is that of
    the full script. `time_min_s` is --time-min. `job_id` is set only in a modification.
    """

    uid: int
    asked: JobRequest
    time_min_s: int | None = None
    script_hash: str = ""
    het_offset: int | None = None
    test_only: bool = False
    job_id: int | None = None
    said: frozenset[str] = frozenset()  # members that were present: what a modification changes

    def request(self, user: str, submit: int) -> JobRequest:
        """Return the request for a model: the same as for the same script read by slurm.sbatch."""
        return replace(self.asked, user=user, submit=submit)

    def changed(self, known: JobRequest, submit: int) -> JobRequest:
        """Return a known job's request with the changes of this modification; scripts cannot be modified."""
        new: dict[str, Any] = {name: getattr(self.asked, name) for name, by in _SAID_BY.items() if self.said & by}
        return replace(known, submit=submit, comment=self.asked.comment, **new)


_TRES: Final = frozenset({"tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task"})
_SAID_BY: Final = {  # field of a request -> the members that change it
    **{name: frozenset({name}) for name in ("account", "partition", "qos", "name")},
    "time_limit_s": frozenset({"time_limit"}),
    "nodes": frozenset({"min_nodes"}),
    "cpus": frozenset({"min_cpus", "num_tasks", "cpus_per_task"}),
    "mem_b": frozenset({"mem_per_node_mb", "mem_per_cpu_mb", "mem_per_tres"}),
    "gpus": _TRES,
    "gpu_type": _TRES,
    "whole_node": frozenset({"shared"}),
}


def read_job_desc(job: object, uid: int = 0) -> JobDesc:
    """Read the `job` of a plugin's request; `uid` is used where it names no user. Raises ParseError."""
    if not isinstance(job, Mapping):
        raise ParseError("advice: the request has no job")
    settled, cpus = _amounts(job)
    gpus = min(settled.gpus, _LARGEST)
    script = _text(job, "script", _LONGEST_SCRIPT) if "script" in job else None
    script_hash = job.get("script_hash")
    limit = job.get("time_limit")
    user = _count(job, "user_id", (1 << 32) - 2)
    asked = JobRequest(
        user="",
        submit=0,
        account=_text(job, "account").lower(),  # slurmdbd keeps accounts in lower case
        partition=_text(job, "partition"),
        qos=_text(job, "qos"),
        name=_text(job, "name"),
        time_limit_s=None if limit == _INFINITE else _minutes(job, "time_limit"),
        nodes=settled.nodes,
        cpus=cpus,
        mem_b=_memory(job, settled.nodes, cpus, gpus),
        gpus=gpus,
        gpu_type=settled.types,
        is_array=bool(job.get("array_inx")),
        interactive=script is None and "script_bytes" not in job and "job_id" not in job,
        script=script,
        comment=_text(job, "comment"),
        whole_node=job.get("shared") == 0 and job.get("shared") is not False,
    )
    return JobDesc(
        uid=uid if user is None else user,
        asked=asked,
        time_min_s=_minutes(job, "time_min"),
        script_hash=script_hash if isinstance(script_hash, str) and _HASH.fullmatch(script_hash) else "",
        het_offset=_count(job, "het_job_offset"),
        test_only=job.get("test_only") is True,
        job_id=_count(job, "job_id"),
        said=frozenset(job) if "job_id" in job else frozenset(),
    )


def _amounts(job: Mapping[str, Any]) -> tuple[Settled, int]:
    """Return GPUs, nodes and processors of the entire job: sbatch_amounts.with_amounts for a job description."""
    nodes = _count(job, "min_nodes") or 1
    said = _count(job, "num_tasks") or 0
    tasks = said or (_count(job, "ntasks_per_node") or 0) * nodes
    asked = RequestedGpus(
        of_job=_gpus(job, "tres_per_job"),
        of_node=_gpus(job, "tres_per_node"),
        of_socket=_gpus(job, "tres_per_socket"),
        of_task=_gpus(job, "tres_per_task"),
        tasks_of_gpu=_count(job, "ntasks_per_tres") or 0,
    )
    settled = settle(asked, nodes, _count(job, "sockets_per_node") or 1, tasks or None)
    of_task = _count(job, "cpus_per_task") or _task_cpus(job)
    least = _count(job, "min_cpus") or (tasks or 1) * max(of_task, 1)
    by_gpus = cpus_by_gpus(_gpus(job, "cpus_per_tres").get("", 0), asked)
    return settled, cpus_of(least, max(settled.tasks, 0 if said else tasks), by_gpus or of_task)


def _gpus(job: Mapping[str, Any], member: str) -> dict[str, int]:
    """Return type -> count of the GPUs in one of the tres_per_* lists."""
    text = job.get(member)
    if not isinstance(text, str) or "gpu" not in text:
        return {}
    return counted(gpu_items(text[:_LONGEST]))


def _task_cpus(job: Mapping[str, Any]) -> int:
    """Return the processors of a task where --tres-per-task names them, else 1."""
    text = job.get("tres_per_task")
    found = _TASK_CPUS.search(text[:_LONGEST]) if isinstance(text, str) and "cpu" in text else None
    return int(found[1]) if found else 1


def _memory(job: Mapping[str, Any], nodes: int, cpus: int, gpus: int) -> int | None:
    """Return bytes over all nodes, None where nothing, or all of a node's memory, is requested."""
    for member, count in (("mem_per_node_mb", nodes), ("mem_per_cpu_mb", cpus)):
        if (each := _count(job, member, _LARGEST_MB)) is not None:
            return min(each * count * _MIB, 1 << 62) or None
    text = job.get("mem_per_tres")
    found = _AMOUNT.search(text[:_LONGEST]) if isinstance(text, str) and "gpu" in text else None
    return (min(int(found[1]) * gpus * _MIB, 1 << 62) or None) if found else None


def _minutes(job: Mapping[str, Any], member: str) -> int | None:
    """Return a time in seconds; 0 minutes mean no limit, as in sbatch."""
    minutes = _count(job, member)
    return minutes * MINUTE_S if minutes else None


def _count(job: Mapping[str, Any], member: str, most: int = _LARGEST) -> int | None:
    value = job.get(member)
    return value if type(value) is int and 0 <= value <= most else None


def _text(job: Mapping[str, Any], member: str, most: int = _LONGEST) -> str:
    """Return a text, bytes that are not UTF-8 as escapes: as `storable` gives them."""
    value = job.get(member)
    if type(value) is str:
        return value[:most] if value.isascii() else decoded(value[:most].encode("utf-8", "surrogatepass"))
    if isinstance(value, Mapping) and isinstance(encoded := value.get("b64"), str):
        try:
            return decoded(base64.b64decode(encoded[: 2 * most], validate=True))[:most]
        except ValueError:
            return ""
    return ""

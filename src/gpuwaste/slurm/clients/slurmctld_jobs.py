"""The jobs in slurmctld: with their GPUs by node from `scontrol show job -d`, or as requests from slurmrestd.

A job's name, comment and paths are free text, in which its user may imitate a record or a `Nodes=` line. So nodes and
times are read only between `UserId=` and `MinCPUsNode=`, where users cannot write, and a record whose true `UserId=`
cannot be distinguished from an imitation is rejected, as is every record whose id occurs twice.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.job_states import WAITING
from gpuwaste.core.units import MINUTE_S, parse_duration_s
from gpuwaste.slurm.accounting import rest_value as value
from gpuwaste.slurm.formats.gpu_positions import GresOnNode, job_gres_on_node
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.formats.slurm_times import parse_time_s
from gpuwaste.slurm.site.site_fields import WHOLE_NODES, fields_of
from gpuwaste.slurm.site.slurm_values import MIB, size
from gpuwaste.slurm.submit.job_request import JobRequest, request_from_tres, request_like

_HEADER = re.compile(r"^JobId=(\d{1,10})((?: \w+=\S+)*?) JobName=", re.MULTILINE | re.ASCII)
_BREAK: Final = r"(?:\n   | )"  # how Slurm begins a line of a record; a blank with -o
_SLUID_TEXT: Final = rf"{_BREAK}SLUID=s[0-9A-Z]{{13}}"  # from 25.11 on, after the name
_HET_SET_TEXT: Final = rf"{_BREAK}HetJobIdSet=[\d,\-]+"
_USER_TEXT: Final = rf"{_BREAK}UserId=([^\n=]{{1,256}}?)(?:\((\d{{1,10}})\))? GroupId="
_USER = re.compile(_USER_TEXT, re.ASCII)
_USER_OF_NAMED = re.compile(rf"(?:{_SLUID_TEXT})?(?:{_HET_SET_TEXT})?{_USER_TEXT}", re.ASCII)
_HET_SET = re.compile(rf"{_HET_SET_TEXT}\Z", re.ASCII)
_SLUID = re.compile(rf"{_SLUID_TEXT}\Z", re.ASCII)
_HEAD_END = re.compile(r"\s(?:MinCPUsNode|Features)=")
_NODES = re.compile(r"(?:^|(?<=\s))Nodes=(\S+) CPU_IDs=(\S*) Mem=(\S*) GRES=(\S*)")
_SHARING = re.compile(r"\sOverSubscribe=(\S+)(?: Exclusive=(\S+))? Contiguous=")
_RESERVATION = re.compile(rf" DelayBoot=\S*{_BREAK}Reservation=(\S+)")
_MEMORY_NODE = re.compile(r"\sMinCPUsNode=\d{1,9} MinMemoryNode=(\d{1,12}[KMGTP]?)(?=\s)", re.ASCII)
_DIGITS = re.compile(r"\d{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunningJob:
    """One job of slurmctld's memory; times are UTC seconds, None is "not known".

    `nodes` maps node name to what the job holds there; `node_list` is the hostlist as printed. `priority`, `reason` and
    `eligible` (when it may start) are those of a pending job; priority 0 is a held one. `reservation` is the name of
    the requested reservation. `batch_host` is the node of the batch script; `memory_node_b` is the memory that is
    requested per node, None where it is requested per CPU or GPU.
    """

    job_id: int
    printed_id: str
    name: str
    user: str
    uid: int | None
    account: str
    partition: str
    qos: str
    state: str
    submit: int | None
    start: int | None
    end: int | None
    restarts: int
    node_list: str
    n_nodes: int
    nodes: dict[str, GresOnNode] = field(default_factory=dict)
    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None
    het_offset: int | None = None
    time_limit_s: int | None = None
    suspended_at: int | None = None
    exclusive: bool = False
    batch: bool = True
    tres: str = ""
    req_tres: str = ""
    priority: int | None = None
    eligible: int | None = None
    reason: str = ""
    reservation: str = ""
    batch_host: str = ""
    memory_node_b: int | None = None


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A rejected record; `job_id` is that of its first line."""

    job_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class JobListing:
    """The records of one output: those that could be read, and those that could not with the reason."""

    jobs: tuple[RunningJob, ...]
    bad: tuple[BadRecord, ...]


def parse_jobs(text: str) -> JobListing:
    """Read every record, of the many-line form or of -o. Never raises."""
    headers = list(_HEADER.finditer(text))
    ids = Counter(int(header[1]) for header in headers)
    jobs: list[RunningJob] = []
    bad: list[BadRecord] = []
    for index, header in enumerate(headers):
        job_id = int(header[1])
        stop = headers[index + 1].start() if index + 1 < len(headers) else len(text)
        if ids[job_id] > 1:
            bad.append(
                BadRecord(job_id, f"job {job_id}: {ids[job_id]} records with this id, one may be text in a job's name")
            )
            continue
        try:
            jobs.append(_record(header, text[header.end() : stop], None))
        except GpuwasteError as error:
            bad.append(BadRecord(job_id, f"job {job_id}: {error}"))
    return JobListing(tuple(jobs), tuple(bad))


def parse_job(text: str, job_id: int, name: str) -> RunningJob:
    """Read the record of `job_id` from an output with only this job, whose name is known. Raises ParseError."""
    for header in _HEADER.finditer(text):
        if int(header[1]) == job_id and text.startswith(name, header.end()):
            return _record(header, text[header.end() :], name)
    raise ParseError(f"job {job_id}: no record of that id and name in the output of scontrol")


def _record(header: re.Match[str], rest: str, name: str | None) -> RunningJob:
    user = _USER.search(rest) if name is None else _USER_OF_NAMED.match(rest, len(name))
    if user is None:
        raise ParseError("the record is cut off before UserId=")
    body = rest[user.end() :]
    end = _HEAD_END.search(body)
    if end is None:
        raise ParseError("the record is cut off before MinCPUsNode=")
    if name is None:
        if _USER.search(body):
            raise ParseError("UserId= occurs twice: its name or comment imitates a record")
        name = rest[: user.start()]
        name = _HET_SET.sub("", name) if "HetJobId=" in header[2] else name
        name = _SLUID.sub("", name)
    return _job(header, name, user, body[: end.start()], body[end.start() :])


def _job(header: re.Match[str], name: str, user: re.Match[str], head: str, tail: str) -> RunningJob:
    fields = _Fields(head)
    ids = _Fields(header[2])
    state = fields.word("JobState")
    started = state not in WAITING
    sharing = _SHARING.search(tail)
    reservation = _RESERVATION.search(tail)
    memory = _MEMORY_NODE.match(tail)
    node_list = fields.word("NodeList")
    return RunningJob(
        job_id=int(header[1]),
        printed_id=_printed_id(header[1], ids),
        name=name,
        user=user[1],
        uid=int(user[2]) if user[2] else None,
        account=fields.word("Account"),
        partition=fields.word("Partition"),
        qos=fields.word("QOS"),
        state=state,
        submit=fields.time("SubmitTime"),
        start=fields.time("StartTime") if started else None,  # before the start it is the scheduler's estimate
        end=fields.time("EndTime") if started else None,
        restarts=fields.number("Restarts") or 0,
        node_list=node_list,
        n_nodes=fields.number("NumNodes") or 0,
        nodes=_nodes(head),
        array_job_id=ids.number("ArrayJobId"),
        array_task_id=ids.whole("ArrayTaskId"),
        het_job_id=ids.number("HetJobId"),
        het_offset=ids.number("HetJobOffset"),
        time_limit_s=parse_duration_s(fields.word("TimeLimit")),
        suspended_at=fields.time("SuspendTime") if state == "SUSPENDED" else None,
        exclusive=sharing is not None and (sharing[2] in WHOLE_NODES if sharing[2] else sharing[1] == "NO"),
        batch=fields.word("BatchFlag") not in {"0", ""},
        tres=fields.word("AllocTRES") or fields.word("TRES"),
        # Up to 22.05 TRES is the request of a pending job and the allocation of a running one.
        req_tres=fields.word("ReqTRES") or fields.word("TRES"),
        priority=fields.whole("Priority"),
        eligible=fields.time("EligibleTime"),
        reason=fields.word("Reason"),
        reservation=reservation[1] if reservation else "",
        batch_host=fields.word("BatchHost"),
        memory_node_b=size(memory[1]) if memory else None,
    )


def _nodes(head: str) -> dict[str, GresOnNode]:
    found: dict[str, GresOnNode] = {}
    for hostlist, cpu_ids, memory, gres in _NODES.findall(head):
        held = replace(job_gres_on_node(gres), cpus=_cpus(cpu_ids), memory_b=_mib(memory))
        for node in expand(hostlist):
            if node in found:
                raise ParseError(f"node {node} occurs in two Nodes= lines")
            found[node] = held
    return found


def _cpus(ids: str) -> int | None:
    """Count `0-3,8`; None for anything else."""
    try:
        return len(expand(f"[{ids}]")) if ids else 0
    except ParseError:
        return None


def _mib(text: str) -> int | None:
    """Return bytes of a number of MiB, None for anything else."""
    return int(text) * MIB if _DIGITS.fullmatch(text) else None


def _printed_id(job_id: str, ids: "_Fields") -> str:
    task, offset = ids.word("ArrayTaskId"), ids.word("HetJobOffset")
    if task:
        return f"{ids.word('ArrayJobId')}_{task if task.isdigit() else f'[{task}]'}"
    return f"{ids.word('HetJobId')}+{offset}" if offset else job_id


class _Fields:
    """The first occurrence of each KEY=word, "" for absent and (null)."""

    def __init__(self, text: str) -> None:
        self._words = fields_of(text)

    def word(self, key: str) -> str:
        return self._words.get(key, "")

    def time(self, key: str) -> int | None:
        return self._read(key, parse_time_s)

    def number(self, key: str) -> int | None:
        """Return the leading number: NumNodes of a pending job is a range."""
        match = _DIGITS.match(self.word(key))
        return int(match[0]) if match else None

    def whole(self, key: str) -> int | None:
        return int(self.word(key)) if _DIGITS.fullmatch(self.word(key)) else None

    def _read(self, key: str, parse: Callable[[str], int | None]) -> int | None:
        try:
            return parse(self.word(key))
        except ParseError as error:
            raise ParseError(f"{key}: {error}") from error


def parse_requests(data: bytes) -> list[JobRequest]:
    """Return one request per record: several for an array with started tasks and for a het job.

    Raises ParseError and SlurmError: a single job is requested, so one that cannot be read is an error.
    """
    return [_request(job) for job in value.jobs(data)]


def _request(job: Any) -> JobRequest:
    submit = value.time_s(job, "submit_time")
    if submit is None:
        raise ParseError(f"job {value.number(job, 'job_id')}: submit_time is missing")
    limit_min = value.number(job, "time_limit")
    return request_from_tres(
        value.text(job, "tres_req_str"),
        user=value.text(job, "user_name") or str(value.number(job, "user_id") or ""),
        submit=submit,
        account=value.text(job, "account"),
        partition=value.text(job, "partition"),
        qos=value.text(job, "qos"),
        name=value.text(job, "name"),
        time_limit_s=limit_min * MINUTE_S if limit_min else None,
        is_array=bool(value.number(job, "array_job_id")),
        interactive=value.at(job, "batch_flag") is False,
        whole_node=_whole_node(job),
    )


def _whole_node(job: Any) -> bool | None:
    """Return whether whole nodes are requested: `shared` is "none" in 22.05, holds "none" from 24.11 on."""
    found = job.get("shared", 0)
    if found is None or isinstance(found, str | list):
        return "none" in ([found] if isinstance(found, str) else found or ())
    return None


def requests_of(jobs: Iterable[RunningJob]) -> list[JobRequest]:
    """Return the requests of scontrol's records; one without a submit time cannot be placed and is left out."""
    return [
        request_like(job, interactive=not job.batch, whole_node=job.exclusive) for job in jobs if job.submit is not None
    ]

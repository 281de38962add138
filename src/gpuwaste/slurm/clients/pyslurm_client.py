"""PyslurmClient: accounting and single jobs through pyslurm, the rest by the commands. Optional, never the default.

It needs a pyslurm of the same release as the site's Slurm; docs/how-to/slurmrestd.md lists what it cannot read.
What pyslurm does not return, or not reliably, is left unknown: an earlier run of a requeued job (it does not request
duplicates), suspended seconds (`suspended_time` was the elapsed time for years), peak memory (`resident_memory` of its
statistics may be a sum). Processor time is in full seconds. Written against the attributes of 25.11.
Sources: pyslurm's db/job.pyx, db/stats.pyx and db/tres.pyx; the recorded attributes and job of 25.11.2.
"""

import importlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gpuwaste.core.errors import GpuwasteError, ParseError, SlurmError
from gpuwaste.core.text import storable
from gpuwaste.core.units import MINUTE_S
from gpuwaste.slurm.accounting import rest_value as value
from gpuwaste.slurm.accounting.job_record import JobRecord, within
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.accounting.tres_amounts import gpu_count, held_gpus, parse_tres
from gpuwaste.slurm.clients.client import ComposedClient
from gpuwaste.slurm.clients.pyslurm_probe import probe_pyslurm
from gpuwaste.slurm.formats.hostlist import task_text
from gpuwaste.slurm.formats.printed_run import is_interactive, token_of
from gpuwaste.slurm.submit.job_request import JobRequest

_MEBIBYTE: Final = 1024**2
_PLAIN_TRES: Final = ("billing", "cpu", "mem", "node")
_NOWHERE: Final = frozenset({"", "None assigned"})


class Binding(Protocol):
    """The part of pyslurm that is used, so that a recording can replace it.

    `tells_gpus`: its accounting has a job's allocation, which that of Slurm 22.05 lacks.
    """

    @property
    def tells_gpus(self) -> bool:
        """Whether accounting can be read with it."""
        ...

    def accounting(self, start: int, end: int, cluster: str) -> Iterable[Any]:
        """Return the pyslurm.db.Job objects of a window, UTC seconds."""
        ...

    def jobs(self, job_id: int) -> Iterable[Any]:
        """Return the pyslurm.Job objects of an id, of its array and of its het job."""
        ...


class Pyslurm:
    """The real binding; `slurm_conf` names its slurm.conf, "" for Slurm's default."""

    def __init__(self, slurm_conf: str = "") -> None:
        """Import pyslurm. Raises SlurmError where a child process cannot."""
        if slurm_conf:  # Slurm's library reads its environment when it is loaded
            os.environ["SLURM_CONF"] = slurm_conf
        self.tells_gpus = probe_pyslurm().tells_gpus
        self._pyslurm = importlib.import_module("pyslurm")

    def accounting(self, start: int, end: int, cluster: str) -> Iterable[Any]:
        """Run slurmdb_jobs_get."""
        wanted = self._pyslurm.db.JobFilter(start_time=start, end_time=end, clusters=[cluster])
        return _values(self._pyslurm.db.Jobs.load(wanted))

    def jobs(self, job_id: int) -> Iterable[Any]:
        """Run slurm_load_jobs and select from the result."""
        names = ("id", "array_id", "heterogeneous_id")
        found = _values(self._pyslurm.Jobs.load())
        return [job for job in found if job_id in {getattr(job, name, None) for name in names}]


@dataclass(slots=True)
class PyslurmClient(ComposedClient):
    """Reads through pyslurm; `commands` answer everything else."""

    binding: Binding

    def accounting(self, start: int, end: int) -> Iterator[JobRecord | BadRow]:
        """Yield the runs of a window; only the last run of a requeued job, and no peak memory.

        By the commands where this pyslurm lacks a job's GPUs.
        """
        if not self.binding.tells_gpus:
            yield from self.commands.accounting(start, end)
            return
        cluster = self.cluster_name()
        yield from _records(_asked(lambda: self.binding.accounting(start, end, cluster)), cluster)

    def request(self, job_id: int) -> list[JobRequest]:
        """Return what a job in slurmctld's memory asks for."""
        return [request(job) for job in _asked(lambda: self.binding.jobs(job_id))]


def _asked(ask: Any) -> list[Any]:
    """Return the objects; pyslurm's errors become SlurmError."""
    try:
        return list(ask())
    except GpuwasteError:
        raise
    except Exception as error:  # pyslurm's error classes cannot be imported here
        raise SlurmError(f"pyslurm: {type(error).__name__}: {error}: do Slurm's commands work on this host?") from error


def _values(found: Any) -> Iterable[Any]:
    """Return the jobs of a collection, which is a mapping in some releases and a list in others."""
    return list(found.values() if hasattr(found, "values") else found)


def _records(jobs: Iterable[Any], cluster: str) -> Iterator[JobRecord | BadRow]:
    """Yield a JobRecord for each pyslurm.db.Job, a BadRow with its number for one that cannot be read."""
    for line, job in enumerate(jobs, 1):
        try:
            yield _record(_Attributes(job), cluster)
        except GpuwasteError as error:
            yield BadRow(line, str(error), storable(f"job {getattr(job, 'id', '?')}"))


def request(job: Any) -> JobRequest:
    """Return what a pyslurm.Job of slurmctld's memory asks for. Raises ParseError."""
    read = _Attributes(job)
    submit = read.number("submit_time")
    if not submit:
        raise ParseError("submit_time is missing")
    gpus = gpu_count(
        parse_tres(",".join(f"{_gres_name(name)}={count}" for name, count in read.mapping("gres_per_node").items()))
    )
    nodes, mib = read.number("num_nodes"), read.number("memory")
    return JobRequest(
        user=read.text("user_name"),
        submit=submit,
        account=read.text("account"),
        partition=read.text("partition"),
        qos=read.text("qos"),
        name=read.text("name"),
        time_limit_s=read.minutes("time_limit"),
        nodes=nodes,
        cpus=read.number("cpus"),
        mem_b=None if mib is None else mib * _MEBIBYTE,
        gpus=gpus.total * (nodes or 1),
        gpu_type=gpus.type,
        is_array=bool(read.number("array_id")),
        interactive=read.found("is_batch_job") is False,
    )


def _record(read: "_Attributes", cluster: str) -> JobRecord:
    job_id, submit = read.number("id"), read.number("submit_time")
    if not job_id or not submit:
        raise ParseError("id or submit_time is missing")
    start, end = read.number("start_time") or None, read.number("end_time") or None
    allocated = _tres(read.found("allocated_tres"))
    requested = _tres(read.found("requested_tres"))
    gpus = held_gpus(parse_tres(allocated), requested, started=start is not None)
    mib, steps = read.number("memory"), {str(name) for name in read.mapping("steps")}
    nodes = read.text("nodelist")
    return within(
        JobRecord(
            cluster=cluster or read.text("cluster"),
            job_id=job_id,
            submit=submit,
            **_ids(read, job_id),
            name=read.text("name"),
            user=read.text("user_name") or str(read.number("user_id") or ""),
            account=read.text("account"),
            group=read.text("group_name"),
            partition=read.text("partition"),
            qos=read.text("qos"),
            time_limit_s=read.minutes("time_limit"),
            req_tres=requested,
            submit_line=read.text("submit_command"),
            interactive=is_interactive(read.text("submit_command"), steps),
            verdict_id=token_of(read.text("admin_comment")),
            start=start,
            restarts=read.number("requeue_count"),
            nodes="" if nodes in _NOWHERE else nodes,
            n_nodes=read.number("num_nodes"),
            cpus=read.number("cpus"),
            gpus=None if gpus is None else gpus.total,
            gpu_type="" if gpus is None else gpus.type,
            alloc_tres=allocated,
            mem_req_b=None if not mib else mib * _MEBIBYTE,
            end=end,
            elapsed_s=read.number("elapsed_time") if start else None,
            state=(read.text("state").split() or [""])[0],
            exit_code=read.number("exit_code"),
            exit_signal=read.number("exit_code_signal"),
            total_cpu_s=_cpu_s(read, ended=end is not None),
        )
    )


def _ids(read: "_Attributes", job_id: int) -> dict[str, Any]:
    array, task = read.number("array_id") or None, read.number("array_task_id")
    het, offset = read.number("heterogeneous_id") or None, read.number("heterogeneous_offset")
    printed, waiting = str(job_id), read.text("array_tasks_waiting")
    if array:
        printed = f"{array}_{task}" if task is not None else f"{array}_[{task_text(waiting)}]"
    elif het:
        printed = f"{het}+{offset or 0}"
    return {
        "printed_id": printed,
        "array_job_id": array,
        "array_task_id": task if array else None,
        "het_job_id": het,
        "het_offset": (offset or 0) if het else None,
    }


def _tres(found: Any) -> str:
    """Print pyslurm's TrackableResources as sacct does; each amount is a number or an object with `count`."""
    if found is None:
        return ""
    amounts = [(name, _count(getattr(found, name, None))) for name in _PLAIN_TRES]
    gres = getattr(found, "gres", None)
    if isinstance(gres, Mapping):
        amounts += [(_gres_name(name), _count(count)) for name, count in gres.items()]
    return value.tres_print((name, count) for name, count in amounts if count)


def _gres_name(name: object) -> str:
    """Return the name of a GRES as in TRES; pyslurm leaves out the prefix in some releases and places."""
    return f"gres/{str(name).removeprefix('gres/')}"


def _count(found: Any) -> int | None:
    return value.number(getattr(found, "count", found))


def _cpu_s(read: "_Attributes", *, ended: bool) -> float | None:
    """Return full seconds; 0 before the end is "not measured"."""
    seconds = value.number(read.inner("stats", "total_cpu_time"))
    return float(seconds) if seconds or (ended and seconds == 0) else None


class _Attributes:
    """An object's attributes by name; a method is called, a missing attribute is None."""

    def __init__(self, job: Any) -> None:
        self._job = job

    def found(self, name: str) -> Any:
        got = getattr(self._job, name, None)
        return got() if callable(got) else got

    def inner(self, name: str, part: str) -> Any:
        return getattr(self.found(name), part, None)

    def text(self, name: str) -> str:
        return value.text({name: self.found(name)}, name)

    def number(self, name: str) -> int | None:
        return value.number({name: self.found(name)}, name)

    def minutes(self, name: str) -> int | None:
        """Return seconds of a limit in minutes; pyslurm has words for none: UNLIMITED, PartitionLimit."""
        got = self.found(name)
        limit = None if isinstance(got, str) and not got.isdigit() else self.number(name)
        return limit * MINUTE_S if limit else None

    def mapping(self, name: str) -> Mapping[Any, Any]:
        got = self.found(name)
        return got if isinstance(got, Mapping) else {}

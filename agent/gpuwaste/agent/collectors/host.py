"""The host: CPU seconds, memory, processes and suspension of each job, from its cgroup or from its processes.

The cgroup is preferred; for a job without one (proctrack/linuxproc) the descendants of its slurmstepd are used.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import CollectorSettings
from gpuwaste.agent.readings import HostUse
from gpuwaste.agent.step_daemons import StepDaemons, stat_fields

_NS: Final = 1_000_000_000
_US: Final = 1_000_000
_JOB = re.compile(r"job_(\d{1,10})", re.ASCII)
_NUMBER = re.compile(r"\d{1,20}", re.ASCII)  # 64 bits
_MAX_DEPTH: Final = 4  # job/step/user/task
_STOPPED: Final = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE})
KIND: Final = "host"


@dataclass(frozen=True, slots=True)
class _JobGroup:
    """The cgroup of one job: its folder for each controller (version 1), or the one folder (version 2)."""

    cpu: Path
    memory: Path
    freezer: Path
    unified: bool


def _find_jobs(root: Path, node: str, jobs_by_folder: Callable[[str], Mapping[str, int]]) -> dict[int, _JobGroup]:
    """Return the cgroups of the jobs on `node`.

    `jobs_by_folder` returns the job of each folder below a scope, for cgroups named by SLUID (Slurm 26.05).
    """
    scope = _scope(root, node)
    if scope is not None:
        return _unified_jobs(scope, jobs_by_folder)
    return _v1_jobs(root, node)


def _read_group(group: _JobGroup, all_stopped: Callable[[frozenset[int]], bool]) -> HostUse:
    """Read CPU time, memory, processes and whether the job is suspended; a counter that is missing is None."""
    pids = frozenset(_pids(group.cpu))
    if group.unified:
        cpu_us = _stat(group.cpu / "cpu.stat", "usage_usec")
        cpu_s = None if cpu_us is None else cpu_us / _US
        memory = _sum(_stat(group.memory / "memory.stat", "anon"), _stat(group.memory / "memory.stat", "shmem"))
        frozen = _stat(group.freezer / "cgroup.events", "frozen") == 1
    else:
        cpu_ns = _number(group.cpu / "cpuacct.usage")
        cpu_s = None if cpu_ns is None else cpu_ns / _NS
        stat = group.memory / "memory.stat"
        memory = _sum(_stat(stat, "total_rss"), _stat(stat, "total_shmem"))
        frozen = (_text(group.freezer / "freezer.state") or "").strip() in {"FROZEN", "FREEZING"}
    return HostUse(cpu_s, memory, pids, suspended=frozen or all_stopped(pids))


def _scope(root: Path, node: str) -> Path | None:
    """Return slurmstepd's scope in a unified hierarchy: the node's own, where several slurmd share a host."""
    for base in (root / "system.slice", root, root / "unified" / "system.slice"):
        for name in (f"{node}_slurmstepd.scope", "slurmstepd.scope"):
            if (base / name).is_dir():
                return base / name
    return None


def _unified_jobs(scope: Path, jobs_by_folder: Callable[[str], Mapping[str, int]]) -> dict[int, _JobGroup]:
    folders = [folder for folder in _folders(scope) if folder.name != "system"]
    jobs = {folder: _job_number(folder.name) for folder in folders}
    if None in jobs.values():
        known = jobs_by_folder(scope.name)
        jobs = {folder: known.get(folder.name) if job is None else job for folder, job in jobs.items()}
    return {job: _JobGroup(folder, folder, folder, unified=True) for folder, job in jobs.items() if job is not None}


def _v1_jobs(root: Path, node: str) -> dict[int, _JobGroup]:
    """Join the controllers' trees; a job is identified by its cpuacct folder, else by its freezer folder."""
    jobs: dict[int, _JobGroup] = {}
    for controller in ("freezer", "devices", "memory", "cpuset", "cpuacct", "cpu,cpuacct"):
        for base in (root / controller / f"slurm_{node}", root / controller / "slurm"):
            if not base.is_dir():
                continue
            for folder in (job for uid in _folders(base) if uid.name.startswith("uid_") for job in _folders(uid)):
                job_id = _job_number(folder.name)
                if job_id is not None:
                    place = folder.relative_to(base)
                    jobs[job_id] = _JobGroup(
                        folder,
                        root / "memory" / base.name / place,
                        root / "freezer" / base.name / place,
                        unified=False,
                    )
            break
    return jobs


def _job_number(name: str) -> int | None:
    match = _JOB.fullmatch(name)
    return int(match[1]) if match else None


def _folders(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_dir()]
    except OSError:
        return []


def _pids(folder: Path, depth: int = 0) -> Iterator[int]:
    """Yield the processes of a cgroup and of those below; a "slurm" folder holds slurmstepd itself."""
    for word in (_text(folder / "cgroup.procs") or "").split():
        if _NUMBER.fullmatch(word):
            yield int(word)
    if depth < _MAX_DEPTH:
        for child in _folders(folder):
            if child.name != "slurm":
                yield from _pids(child, depth + 1)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = (_text(path) or "").strip()
    return int(text) if _NUMBER.fullmatch(text) else None


def _stat(path: Path, key: str) -> int | None:
    for line in (_text(path) or "").splitlines():
        name, _, value = line.partition(" ")
        if name == key and _NUMBER.fullmatch(value.strip()):
            return int(value)
    return None


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None else first + (second or 0)


class _JobProcesses:
    """Adds up the use of the descendants of each job's slurmstepds."""

    def __init__(self, proc: Path, daemons: StepDaemons) -> None:
        self._proc = proc
        self._daemons = daemons
        self._cpu_s: dict[int, float] = {}

    def all_stopped(self, pids: frozenset[int]) -> bool:
        """Whether there are processes and none of them can run."""
        states = (self._state(pid) for pid in sorted(pids))
        known = False
        for state in states:
            if state is None:
                continue
            if state not in _STOPPED:
                return False
            known = known or state != psutil.STATUS_ZOMBIE
        return known

    def use(self, without: AbstractSet[int]) -> dict[int, HostUse]:
        """Return the use of every job that has a slurmstepd here, except those in `without`.

        Raises OSError where the spool directory or /proc cannot be read.
        """
        stepds = [(item.job_id, item.pid) for item in self._daemons.find() if item.job_id not in without]
        children = self._children() if stepds else {}
        pids: dict[int, set[int]] = {}
        for job, stepd in stepds:
            pids.setdefault(job, set()).update(_descendants(children, stepd))
        self._cpu_s = {job: seconds for job, seconds in self._cpu_s.items() if job in pids}
        return {job: self._use(job, frozenset(members)) for job, members in pids.items()}

    def _use(self, job: int, pids: frozenset[int]) -> HostUse:
        cpu_s, mem_b = 0.0, 0
        for pid in pids:
            try:
                process = psutil.Process(pid)
                with process.oneshot():
                    times = process.cpu_times()
                    mem_b += process.memory_info().rss
            except psutil.Error:
                continue
            cpu_s += times.user + times.system + times.children_user + times.children_system
        # The time of a process without wait() is lost when it ends: the counter must never decrease.
        self._cpu_s[job] = max(cpu_s, self._cpu_s.get(job, 0.0))
        return HostUse(self._cpu_s[job], mem_b, pids, suspended=self.all_stopped(pids))

    def _children(self) -> dict[int, list[int]]:
        """Return the children of every process of this host."""
        children: dict[int, list[int]] = {}
        for name in os.listdir(self._proc):  # noqa: PTH208 names only, each tick
            if name.isdigit():
                fields = stat_fields(self._proc, int(name))
                if fields:
                    children.setdefault(int(fields[1]), []).append(int(name))
        return children

    def _state(self, pid: int) -> str | None:
        fields = stat_fields(self._proc, pid)
        letters = {"T": psutil.STATUS_STOPPED, "t": psutil.STATUS_TRACING_STOP, "Z": psutil.STATUS_ZOMBIE}
        return letters.get(fields[0], psutil.STATUS_RUNNING) if fields else None


def _descendants(children: Mapping[int, list[int]], pid: int) -> set[int]:
    found: set[int] = set()
    waiting = list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        if child not in found:
            found.add(child)
            waiting.extend(children.get(child, ()))
    return found


def create(settings: CollectorSettings) -> "HostUseCollector":
    """Create the collector."""
    return HostUseCollector(settings.cgroup_root, settings.proc_root, settings.spool_dir, settings.node)


class HostUseCollector:
    """Reads the use of all jobs on one node."""

    name = "host"

    def __init__(self, cgroup_root: Path, proc_root: Path, spool_dir: Path, node: str) -> None:
        self._cgroup_root = cgroup_root
        self._node = node
        self._daemons = StepDaemons(proc_root, spool_dir, node)
        self._processes = _JobProcesses(proc_root, self._daemons)

    def use(self) -> dict[int, HostUse]:
        """Return the use by job id. Raises CollectorError where slurmd's spool directory cannot be read."""
        try:
            groups = _find_jobs(self._cgroup_root, self._node, self._daemons.jobs_by_cgroup)
            found = {job: _read_group(group, self._processes.all_stopped) for job, group in groups.items()}
            counted = {job for job, use in found.items() if use.cpu_s is not None and use.mem_b is not None}
            others = self._processes.use(without=counted)
        except OSError as error:
            raise CollectorError(f"host: {error.filename} cannot be read: {error.strerror}") from error
        return found | {job: _join(found[job], use) if job in found else use for job, use in others.items()}

    def close(self) -> None:
        """Forget the cached slurmstepds."""
        self._daemons.forget()


def _join(group: HostUse, processes: HostUse) -> HostUse:
    """Use the cgroup's counters, and the processes' for missing ones (a controller that is not in use)."""
    return HostUse(
        cpu_s=processes.cpu_s if group.cpu_s is None else group.cpu_s,
        mem_b=processes.mem_b if group.mem_b is None else group.mem_b,
        pids=group.pids | processes.pids,
        suspended=group.suspended,
    )

"""Slurm's cgroups of this node, version 1 and 2: where each job's are, and what they count."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.agent.model import HostUse

_NS: Final = 1_000_000_000
_US: Final = 1_000_000
_JOB = re.compile(r"job_(\d{1,10})", re.ASCII)
_NUMBER = re.compile(r"\d{1,20}", re.ASCII)  # 64 bits
_MAX_DEPTH: Final = 4  # job/step/user/task


@dataclass(frozen=True, slots=True)
class JobGroup:
    """The cgroup of one job: its folder for each controller (version 1), or the one folder (version 2)."""

    cpu: Path
    memory: Path
    freezer: Path
    unified: bool


def find_jobs(root: Path, node: str, jobs_by_folder: Callable[[str], Mapping[str, int]]) -> dict[int, JobGroup]:
    """Return the cgroups of the jobs on `node`.

    `jobs_by_folder` returns the job of each folder below a scope, for cgroups named by SLUID (Slurm 26.05).
    """
    scope = _scope(root, node)
    if scope is not None:
        return _unified_jobs(scope, jobs_by_folder)
    return _v1_jobs(root, node)


def read_group(group: JobGroup, all_stopped: Callable[[frozenset[int]], bool]) -> HostUse:
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


def _unified_jobs(scope: Path, jobs_by_folder: Callable[[str], Mapping[str, int]]) -> dict[int, JobGroup]:
    folders = [folder for folder in _folders(scope) if folder.name != "system"]
    jobs = {folder: _job_number(folder.name) for folder in folders}
    if None in jobs.values():
        known = jobs_by_folder(scope.name)
        jobs = {folder: known.get(folder.name) if job is None else job for folder, job in jobs.items()}
    return {job: JobGroup(folder, folder, folder, unified=True) for folder, job in jobs.items() if job is not None}


def _v1_jobs(root: Path, node: str) -> dict[int, JobGroup]:
    """Join the controllers' trees; a job is known by its cpuacct folder, else by its freezer's."""
    jobs: dict[int, JobGroup] = {}
    for controller in ("freezer", "devices", "memory", "cpuset", "cpuacct", "cpu,cpuacct"):
        for base in (root / controller / f"slurm_{node}", root / controller / "slurm"):
            if not base.is_dir():
                continue
            for folder in (job for uid in _folders(base) if uid.name.startswith("uid_") for job in _folders(uid)):
                job_id = _job_number(folder.name)
                if job_id is not None:
                    place = folder.relative_to(base)
                    jobs[job_id] = JobGroup(
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

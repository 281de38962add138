"""Slurm's cgroups of this node, version 1 and 2: where each job's are, and what they count."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.agent.model import HostUse

_NS: Final = 1_000_000_000
_US: Final = 1_000_000
_MAX_DEPTH: Final = 4  # job/step/user/task


@dataclass(frozen=True, slots=True)
class JobGroup:
    """The cgroup of one job: its folder for each controller (version 1), or the one folder (version 2)."""

    cpu: Path
    memory: Path
    freezer: Path
    unified: bool


def find_jobs(root: Path, node: str, job_of: Callable[[int], int | None]) -> dict[int, JobGroup]:
    """Return the cgroups of the jobs on `node`; `job_of` names the job of a pid, for cgroups named by SLUID."""
    scope = _scope(root, node)
    if scope is not None:
        return dict(_unified_jobs(scope, job_of))
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


def _unified_jobs(scope: Path, job_of: Callable[[int], int | None]) -> Iterator[tuple[int, JobGroup]]:
    for folder in _folders(scope):
        if folder.name == "system":
            continue
        job_id = _job_number(folder.name)
        if job_id is None:  # named by SLUID (Slurm 26.05)
            job_id = next((job for job in map(job_of, _pids(folder)) if job is not None), None)
        if job_id is not None:
            yield job_id, JobGroup(folder, folder, folder, unified=True)


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
    digits = name.removeprefix("job_")
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() else None


def _folders(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_dir()]
    except OSError:
        return []


def _pids(folder: Path, depth: int = 0) -> Iterator[int]:
    """Yield the processes of a cgroup and of those below; a "slurm" folder holds slurmstepd itself."""
    for word in (_text(folder / "cgroup.procs") or "").split():
        if word.isdigit():
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
    return int(text) if text.isdigit() else None


def _stat(path: Path, key: str) -> int | None:
    for line in (_text(path) or "").splitlines():
        name, _, value = line.partition(" ")
        if name == key and value.strip().isdigit():
            return int(value)
    return None


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None else first + (second or 0)

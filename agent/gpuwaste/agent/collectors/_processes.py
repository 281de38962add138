"""Processes of jobs where there are no cgroups: the descendants of each slurmstepd, and whose job a process is.

slurmstepd is known by its socket in slurmd's spool directory, which names job and step: the kernel tells who listens
there, so that neither a process title nor an environment has to be believed.
"""

import os
import re
import socket
import struct
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

import psutil

from gpuwaste.agent.model import HostUse

_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid of SO_PEERCRED
_MAX_CACHED: Final = 4096
_MAX_ENVIRON_B: Final = 2 * 1024 * 1024
_STOPPED: Final = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE})


class JobProcesses:
    """Finds jobs by process; answers are cached by socket, and by pid and the start of the process."""

    def __init__(self, proc: Path, spool_dir: Path, node: str) -> None:
        self._proc = proc
        self._spool_dir = spool_dir
        self._node = node
        self._socket_name = re.compile(re.escape(node) + r"_(\d{1,10})\.\d{1,10}(?:\.\d{1,10})?")
        self._stepds: dict[tuple[str, int], int] = {}  # (socket's name, inode) -> pid of the slurmstepd
        self._jobs: dict[tuple[int, str], int] = {}
        self._cpu_s: dict[int, float] = {}

    def job_of(self, pid: int) -> int | None:
        """Return the job of a process of this node by the environment that it was started with."""
        start = self._start(pid)
        if start is None:
            return None
        key = (pid, start)
        job = self._jobs.get(key) or self._read_job(pid)
        if job is not None:  # a process between fork and exec has no answer yet
            if len(self._jobs) >= _MAX_CACHED:
                self._jobs.clear()
            self._jobs[key] = job
        return job

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
        """Return the use of every job that has a slurmstepd here, but those in `without`.

        Raises OSError where the spool directory or /proc cannot be read.
        """
        stepds = [(job, pid) for job, pid in self._find_stepds() if job not in without]
        children = self._children() if stepds else {}
        pids: dict[int, set[int]] = {}
        for job, stepd in stepds:
            pids.setdefault(job, set()).update(_descendants(children, stepd))
        self._cpu_s = {job: seconds for job, seconds in self._cpu_s.items() if job in pids}
        return {job: self._use(job, frozenset(members)) for job, members in pids.items()}

    def forget(self) -> None:
        """Drop what is cached."""
        self._stepds, self._jobs = {}, {}

    def _find_stepds(self) -> list[tuple[int, int]]:
        """Return (job, pid) of every slurmstepd that listens."""
        found: dict[tuple[str, int], int] = {}
        jobs: list[tuple[int, int]] = []
        with os.scandir(self._spool_dir) as entries:
            for entry in entries:
                match = self._socket_name.fullmatch(entry.name)
                key = (entry.name, entry.inode())
                pid = (self._stepds.get(key) or _listener(Path(entry.path))) if match else None
                if match and pid:
                    found[key] = pid
                    jobs.append((int(match[1]), pid))
        self._stepds = found
        return jobs

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
        # A process that nobody waited for takes its time with it: the counter never goes back.
        self._cpu_s[job] = max(cpu_s, self._cpu_s.get(job, 0.0))
        return HostUse(self._cpu_s[job], mem_b, pids, suspended=self.all_stopped(pids))

    def _children(self) -> dict[int, list[int]]:
        """Return the children of every process of this host."""
        children: dict[int, list[int]] = {}
        for name in os.listdir(self._proc):  # noqa: PTH208 names only, each tick
            if name.isdigit():
                fields = self._stat(int(name))
                if fields:
                    children.setdefault(int(fields[1]), []).append(int(name))
        return children

    def _read_job(self, pid: int) -> int | None:
        wanted = {b"SLURM_JOB_ID": b"", b"SLURMD_NODENAME": b""}
        for entry in self._read(pid, "environ").split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name in wanted:
                wanted[name] = value
        here = wanted[b"SLURMD_NODENAME"].decode(errors="replace") in {"", self._node}
        job = wanted[b"SLURM_JOB_ID"]
        return int(job) if here and job.isdigit() else None

    def _stat(self, pid: int) -> list[str]:
        """Return the fields of stat after the name: state first, then the parent, the start at 19."""
        return self._read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()

    def _start(self, pid: int) -> str | None:
        fields = self._stat(pid)
        return fields[19] if len(fields) > 19 else None  # noqa: PLR2004 proc(5): starttime

    def _state(self, pid: int) -> str | None:
        fields = self._stat(pid)
        letters = {"T": psutil.STATUS_STOPPED, "t": psutil.STATUS_TRACING_STOP, "Z": psutil.STATUS_ZOMBIE}
        return letters.get(fields[0], psutil.STATUS_RUNNING) if fields else None

    def _read(self, pid: int, name: str) -> bytes:
        try:
            with (self._proc / str(pid) / name).open("rb") as file:
                return file.read(_MAX_ENVIRON_B)
        except OSError:
            return b""


def _descendants(children: Mapping[int, list[int]], pid: int) -> set[int]:
    found: set[int] = set()
    waiting = list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        if child not in found:
            found.add(child)
            waiting.extend(children.get(child, ()))
    return found


def _listener(path: Path) -> int | None:
    """Return the pid of the process that listens on a socket; None where nobody does, or not at this moment."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.setblocking(False)  # noqa: FBT003 the socket's own interface
            client.connect(str(path))
            packed = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return None
    pid: int = _CREDENTIALS.unpack(packed)[0]
    return pid or None

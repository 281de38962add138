"""Each slurmstepd of this node, by the socket of its step in slurmd's spool directory, and the facts about runs in it.

The directory belongs to root and the kernel reports who listens, so that no process name, command line or environment,
which the job's user controls, needs to be trusted.
"""

import os
import re
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import SlurmError
from gpuwaste.net.peers import peer_of

_START: Final = 19  # starttime in /proc/PID/stat, fields after the name
_MAX_STAT_B: Final = 4096
_MAX_CGROUP_B: Final = 65_536
UNKNOWN: Final = 0
"""There is a listener, but the kernel does not report which at this moment."""
BATCH_STEP: Final = 4294967291  # SLURM_BATCH_SCRIPT
EXTERN_STEP: Final = 4294967292  # SLURM_EXTERN_CONT
INTERACTIVE_STEP: Final = 4294967290  # SLURM_INTERACTIVE_STEP
_REST = re.compile(r"(\d{1,10})\.(\d{1,10})(?:\.\d{1,10})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class StepDaemon:
    """A running slurmstepd and the raw id of its job."""

    job_id: int
    pid: int


class StepDaemons:
    """Finds them; a result is cached as long as the socket and the process are the same."""

    def __init__(self, proc: Path, spool_dir: Path, node: str) -> None:
        self._proc = proc
        self._spool_dir = spool_dir
        self._socket_name = re.compile(re.escape(node) + r"_(\d{1,10})\.\d{1,10}(?:\.\d{1,10})?", re.ASCII)
        self._known: dict[tuple[str, int], tuple[int, str]] = {}  # (socket's name, inode) -> (pid, its start)

    def find(self) -> list[StepDaemon]:
        """Return every running slurmstepd. Raises OSError where the spool directory cannot be read."""
        known: dict[tuple[str, int], tuple[int, str]] = {}
        found = []
        with os.scandir(self._spool_dir) as entries:
            for entry in entries:
                match = self._socket_name.fullmatch(entry.name)
                if match is None:
                    continue
                key = (entry.name, entry.inode())
                process = self._still(key) or self._listener(Path(entry.path))
                if process is not None:
                    known[key] = process
                    found.append(StepDaemon(int(match[1]), process[0]))
        self._known = known
        return found

    def jobs_by_cgroup(self, scope: str) -> dict[str, int]:
        """Return the job of each folder below a cgroup (version 2) that contains a slurmstepd."""
        found = {}
        for daemon in self.find():
            folder = _below(read_proc(self._proc, daemon.pid, "cgroup", _MAX_CGROUP_B), scope)
            if folder:
                found[folder] = daemon.job_id
        return found

    def forget(self) -> None:
        """Clear the cache."""
        self._known = {}

    def _still(self, key: tuple[str, int]) -> tuple[int, str] | None:
        """Return the process that listened on the socket before, None where its pid was reused."""
        process = self._known.get(key)
        return process if process is not None and self._start(process[0]) == process[1] else None

    def _listener(self, path: Path) -> tuple[int, str] | None:
        pid = listener(path)
        start = self._start(pid) if pid else ""
        return (pid, start) if pid and start else None

    def _start(self, pid: int) -> str:
        fields = stat_fields(self._proc, pid)
        return fields[_START] if len(fields) > _START else ""


def listener(path: Path) -> int | None:
    """Return the pid of the process that listens on a Unix socket, None without a listener, UNKNOWN if unclear."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.setblocking(False)  # noqa: FBT003 the socket's own interface
            client.connect(str(path))
            pid, _ = peer_of(client)
    except (ConnectionRefusedError, FileNotFoundError):
        return None
    except OSError:  # its queue is full, or access is denied
        return UNKNOWN
    return pid or UNKNOWN


def stat_fields(proc: Path, pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name (user-controlled): state, parent, ...; none if it is gone."""
    return read_proc(proc, pid, "stat", _MAX_STAT_B).rpartition(")")[2].split()


def read_proc(proc: Path, pid: int, name: str, most_b: int) -> str:
    """Return the beginning of a file of a process, "" where it cannot be read."""
    try:
        with (proc / str(pid) / name).open("rb") as file:
            return file.read(most_b).decode("utf-8", "replace")
    except OSError:
        return ""


def _below(text: str, scope: str) -> str:
    """Return the name of the folder below `scope` on the path of a /proc/PID/cgroup, "" if it is elsewhere."""
    for line in text.splitlines():
        if line.startswith("0::"):
            parts = line.split("/")
            return parts[parts.index(scope) + 1] if scope in parts[:-1] else ""
    return ""


@dataclass(frozen=True, slots=True)
class StepSocket:
    """One running step on this node: its socket's file name, and when that was created, microseconds UTC."""

    job_id: int
    step_id: int
    mtime_us: int
    name: str


def scan_steps(spool_dir: Path, node: str) -> frozenset[StepSocket]:
    """Return the steps whose sockets `NODE_JOB.STEP` are in slurmd's spool directory.

    Other nodes' sockets and other files are left out. Raises SlurmError where the directory cannot be read.
    """
    found = set()
    try:
        with os.scandir(spool_dir) as entries:
            for entry in entries:
                step = _step_of(entry, node)
                if step is not None:
                    found.add(step)
    except OSError as error:
        raise SlurmError(f"{spool_dir}: slurmd's spool directory cannot be read: {error.strerror}") from error
    return frozenset(found)


def _step_of(entry: os.DirEntry[str], node: str) -> StepSocket | None:
    name = entry.name
    if not name.startswith(f"{node}_"):
        return None
    match = _REST.fullmatch(name, len(node) + 1)
    if match is None:
        return None
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # the step ended between the listing and this check
    if not stat.S_ISSOCK(status.st_mode):
        return None
    return StepSocket(int(match[1]), int(match[2]), status.st_mtime_ns // 1000, name)

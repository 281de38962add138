"""Processes of a cluster: start them detached, know them again by pid and start time, find and end what they left."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.patience import patient

MARKER = "GPUWASTE_CLUSTER_ID"
"""Environment variable that every process of a cluster carries; the sweep at stop looks for its value."""

_POLL_S = 0.02
SLURM_POLL_S = 0.1
"""Between two questions to slurmctld: asked without a pause it never comes to end its jobs."""
_REST = 2.0
_MAX_REST_S = 2.0
"""How long to wait between two questions, in times of what the first one took, and at most."""
_LATE = 0.025
_MAX_LATE_S = 1.0
"""By how much of the time that was waited already the answer may be late, and at most."""


class ClusterError(GpuwasteError):
    """A loopback cluster cannot do what was asked; a failing daemon's log follows on further lines."""


def wait_until(
    predicate: Callable[[], bool],
    timeout_s: float,
    what: str,
    detail: Callable[[], str] = str,
    *,
    poll_s: float = _POLL_S,
) -> None:
    """Poll `predicate` until it holds; else raise ClusterError with `what` and `detail()` after `timeout_s` seconds.

    $GPUWASTE_TEST_PATIENCE says how many times as long to wait. `poll_s` is the shortest time between two questions:
    one that starts a program is asked less often, or it would take the processor from what it waits for, and so is
    one that has been asked for long.
    """
    timeout_s = patient(timeout_s)
    began = asked = time.monotonic()
    deadline = began + timeout_s
    while not predicate():
        now = time.monotonic()
        if now > deadline:
            raise ClusterError(f"gave up after {timeout_s:g} s waiting for {what}\n{detail()}".rstrip())
        rest_s = min(_REST * (now - asked), _MAX_REST_S)
        time.sleep(max(poll_s, rest_s, min(_LATE * (now - began), _MAX_LATE_S)))
        asked = time.monotonic()


def start_ticks(pid: int) -> int | None:
    """Return when a live process started, in clock ticks since boot; None for no such process or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def tail(path: Path, lines: int = 15) -> str:
    """Return the last lines of a log file, or a note that there are none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace").rstrip()
    except OSError as error:
        return f"({path}: {error.strerror})"
    return "\n".join([f"--- {path}", *text.splitlines()[-lines:]])


def as_user(user: str, caps: Iterable[str] = ()) -> list[str]:
    """Return the setpriv prefix that runs a command as `user`, keeping only the named capabilities ("sys_ptrace")."""
    if user == "root":
        return []
    prefix = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--init-groups"]
    plus = "".join(f",+{cap}" for cap in caps)
    return [*prefix, f"--inh-caps=-all{plus}", *([f"--ambient-caps=-all{plus}"] if plus else []), "--"]


@dataclass
class ManagedProcess:
    """A daemon of the cluster; `start` is its start time in ticks, so that a recycled pid is never signalled."""

    name: str
    pid: int
    start: int
    logs: tuple[Path, ...] = ()
    popen: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def returncode(self) -> int | None:
        """Exit status of a process that this Python process started and that has ended, else None."""
        return self.popen.poll() if self.popen else None

    def alive(self) -> bool:
        """Tell whether this very process still runs."""
        if self.popen:
            return self.popen.poll() is None
        return start_ticks(self.pid) == self.start

    def tail(self, lines: int = 15) -> str:
        """Return the last lines of its logs."""
        return "\n".join(tail(log, lines) for log in self.logs)

    def wait_for(self, predicate: Callable[[], bool], timeout_s: float = 20, what: str = "") -> None:
        """Wait until `predicate` holds; raise ClusterError with the log's tail when time is up or the process ends."""
        what = what or f"{self.name} to be ready"

        def ready() -> bool:
            if predicate():
                return True
            if not self.alive():
                raise ClusterError(f"{self.name} ended (status {self.returncode}) before {what}\n{self.tail()}")
            return False

        wait_until(ready, timeout_s, what, self.tail)

    def signal(self, number: int) -> None:
        """Send a signal if this very process still runs."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, timeout_s: float = 10) -> int | None:
        """Wait until it has ended and return its status where known."""
        wait_until(lambda: not self.alive(), timeout_s, f"{self.name} (pid {self.pid}) to end", self.tail)
        return self.returncode

    def stop(self, timeout_s: float = 10) -> None:
        """End it: SIGTERM, then SIGKILL after `timeout_s` seconds."""
        self.signal(signal.SIGTERM)
        try:
            self.wait(timeout_s)
        except ClusterError:
            self.kill()

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self.signal(signal.SIGKILL)
        self.wait()


def spawn(name: str, argv: Sequence[str], logs: Sequence[Path], env: Mapping[str, str], cwd: Path) -> ManagedProcess:
    """Start a command in a session of its own, detached from any terminal, its output appended to `logs[0]`."""
    if shutil.which(argv[0], path=env.get("PATH")) is None:
        raise ClusterError(f"cannot start {name}: no command {argv[0]!r}; install it or put it on PATH")
    with logs[0].open("ab") as output:
        popen = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=dict(env), cwd=cwd, start_new_session=True
        )
    return ManagedProcess(name, popen.pid, start_ticks(popen.pid) or 0, tuple(logs), popen)


def _parents() -> dict[int, int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    return parents


def marked(cluster_id: str, directory: Path | None = None) -> list[int]:
    """Return the pids of all processes of a cluster: those with its marker and their descendants, never ourselves.

    With `directory` each slurmstepd that works below it too: since 24.11 its title overwrites its environment.
    """
    needle = f"{MARKER}={cluster_id}".encode()
    parents = _parents()
    found = set()
    for pid in parents:
        with contextlib.suppress(OSError):
            process = Path(f"/proc/{pid}")
            if needle in (process / "environ").read_bytes().split(b"\0") or _steps_in(process, directory):
                found.add(pid)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    ours, pid = set(), os.getpid()
    while pid:
        ours.add(pid)
        pid = parents.get(pid, 0)
    return sorted(pid for pid in found - ours if start_ticks(pid) is not None)


def _steps_in(process: Path, directory: Path | None) -> bool:
    if directory is None or (process / "comm").read_bytes() != b"slurmstepd\n":
        return False
    return (process / "cwd").readlink().is_relative_to(directory.resolve())


def sweep(cluster_id: str, directory: Path | None = None, timeout_s: float = 10) -> None:
    """Kill all processes that a cluster left, jobs' processes included, until there is none."""

    def left() -> list[int]:
        return marked(cluster_id, directory)

    def none_left() -> bool:
        found = left()
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not found

    wait_until(none_left, timeout_s, "the cluster's last processes to end", lambda: f"left: {left()}")

"""One machine of the field: started on an overlay of a tree, asked by commands, restarted, ended with all it has.

Its process 1 dies with the process that started it, unless that one says that it is kept.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster_process import wait_until
from tools.field import cgroups
from tools.field.base import NAME, RUN_S, AnyMachine
from tools.trees import store

_BOOT_S: Final = 60.0
_END_S: Final = 30.0


class Machine(AnyMachine):
    """A machine whose files are in `folder`; `pid` is that of its process 1 here, 0 while it is down."""

    def __init__(self, folder: Path, *, kept: bool = False) -> None:
        self.folder = folder
        self.cpus = os.cpu_count() or 1
        self.kept = kept
        """It outlives the process that starts it."""
        self.order: dict[str, str] = {"name": NAME}
        """What boot.py is told of this machine beside its folders."""
        self.others: tuple[str, ...] = ()
        """Addresses of machines that belong to it: the watch of the network does not report packets to them."""
        self.cgroup = cgroups.of(folder)
        self._outer: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The number of its process 1 on this host, 0 where none runs."""
        try:
            pid, ticks = (self.folder / "pid").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return 0
        return int(pid) if _started(int(pid)) == ticks else 0

    @property
    def root(self) -> Path:
        """Its files, as they are while it runs."""
        return Path(f"/proc/{self.pid}/root")

    def boot(self, lowers: Sequence[Path]) -> None:
        """Start it on what its overlay has; return when its init has started all. Raises GpuwasteError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        self.cgroup.mkdir(exist_ok=True)
        order = {"folder": str(self.folder), "lowers": [str(lower) for lower in lowers], "cgroup": str(self.cgroup)}
        order |= self.order
        argv = [sys.executable, "-m", "tools.field.boot", json.dumps(order)]
        if not self.kept:
            argv = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
        env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        with (self.folder / "boot.log").open("wb") as log:
            self._outer = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=store.REPOSITORY,
                start_new_session=self.kept,
            )  # fmt: skip
        wait_until(self._has_init, _BOOT_S, "the machine's process 1", self._boot_words, poll_s=0.05)
        if not self.kept:
            self._listen()
        words = ("running", "degraded")
        self.wait("systemctl is-system-running || :", _BOOT_S, "systemd to have started all", wanted=words)

    def _listen(self) -> None:
        """Watch its network from now on; see watch.py."""
        before = len(self._heard())
        argv = ["setpriv", "--pdeathsig", "KILL", "--", "nsenter", f"--net=/proc/{self.pid}/ns/net", "--"]
        argv += [sys.executable, "-m", "tools.field.watch", str(self.folder / "watch"), *self.others]
        with (self.folder / "watch.log").open("wb") as log:
            self._watch = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=store.REPOSITORY)
        wait_until(lambda: len(self._heard()) > before, _BOOT_S, "the watch of the network", poll_s=0.05)

    def heard(self) -> list[str]:
        """Return what left the machine, and what it asked DNS for, since its first start. Raises GpuwasteError."""
        if self._watch is None or self._watch.poll() is not None:
            raise GpuwasteError(f"field: the watch of the network ended: {(self.folder / 'watch.log').read_text()}")
        return [line for line in self._heard() if not line.startswith("ready ")]

    def _heard(self) -> list[str]:
        path = self.folder / "watch"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def _has_init(self) -> bool:
        outer = self._outer
        if outer is None or outer.poll() is not None:
            raise GpuwasteError(f"field: the machine did not start: {self._boot_words()}")
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text(encoding="ascii").split()
            if children and Path(f"/proc/{children[0]}/comm").read_text(encoding="utf-8") == "systemd\n":
                (self.folder / "pid").write_text(f"{children[0]} {_started(int(children[0]))}", encoding="ascii")
                return True
        return False

    def _boot_words(self) -> str:
        files = [self.folder / "boot.log", self.folder / "console.log"]
        return "\n".join(file.read_text(encoding="utf-8", errors="replace")[-1000:] for file in files if file.exists())

    def try_run(self, script: str, *, user: str = "root", timeout_s: float = RUN_S) -> subprocess.CompletedProcess[str]:
        """Run a shell script as a user; after `timeout_s` it is killed, with exit status 124 or 137."""
        return subprocess.run(
            [*self.enter(), *self.words(script, user, timeout_s)], capture_output=True, text=True, errors="replace",
            check=False, stdin=subprocess.DEVNULL, timeout=timeout_s + _END_S,
        )  # fmt: skip

    def enter(self) -> list[str]:
        """Return the command that runs another one in the machine. Raises GpuwasteError where it is down."""
        if not self.pid:
            raise GpuwasteError(f"field: the machine in {self.folder} does not run")
        spaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"]
        return ["nsenter", f"--target={self.pid}", *spaces, "--"]

    def put(self, source: Path, name: str) -> None:
        """Copy a file or a folder of this host into the machine, to the path `name`, with its modes."""
        target = self.file(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the machine."""
        path = self.file(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    def file(self, name: str) -> Path:
        """Return where an absolute path of the machine lies here, while it runs."""
        return self.root / name.lstrip("/")

    def reboot(self, lowers: Sequence[Path]) -> None:
        """Shut it down in good order, as a sysadmin does, and start it again. Raises GpuwasteError."""
        self.try_run("systemctl reboot")
        wait_until(lambda: not self.pid, _BOOT_S, "the machine to shut down", self._boot_words)
        self.down()
        self.boot(lowers)

    def down(self) -> None:
        """End it at once, with all its processes and its cgroups; its files stay. Raises GpuwasteError."""
        deadline = time.monotonic() + _END_S
        while pid := self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise GpuwasteError(f"field: process {pid} of {self.folder} does not end")
            time.sleep(0.05)
        for process in (self._watch, self._outer):
            if process is not None:
                process.kill()
                process.wait(timeout=_END_S)
        self._watch = self._outer = None
        cgroups.remove(self.cgroup)
        (self.folder / "pid").unlink(missing_ok=True)


def _started(pid: int) -> str:
    """Return when a process started, in ticks of the kernel; "" where there is none or it is a zombie."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] == "Z" else words[19]

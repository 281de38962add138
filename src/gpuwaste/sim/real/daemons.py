"""A cluster of virtual nodes on this host: munged, slurmctld and a slurmd for each node, in a private directory."""

import contextlib
import getpass
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

from gpuwaste.core.errors import SlurmError
from gpuwaste.sim.real import conf
from gpuwaste.sim.real.faster_clock import FastClock, search_path, slurm_version
from gpuwaste.sim.real.reaper import MARKER, sweep
from gpuwaste.slurm.clients.command import Output, last_line, run_command
from gpuwaste.slurm.site.cluster_model import ClusterModel

_PORTS: Final = range(15_000, 32_000)  # below those that the kernel gives to clients
_KEY_B: Final = 128
_MUNGE_THREADS: Final = "16"
_BOOT_S: Final = 60.0
_BOOT_NODE_S: Final = 0.5
_POLL_S: Final = 0.1
_ANSWER_S: Final = 60.0
_MOST_OUTPUT_B: Final = 1 << 26
_TAIL_B: Final = 4000


class VirtualCluster:
    """A context: inside, slurmctld takes jobs; after it, no process and no file of it is left."""

    def __init__(self, model: ClusterModel, speed: int, *, jobs: int, memory: bool) -> None:
        self.model = model
        self.version = slurm_version()
        self._speed, self._jobs, self._memory = speed, jobs, memory
        self._marker = uuid.uuid4().hex
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._reaper: subprocess.Popen[bytes] | None = None
        self.clock: FastClock
        self.directory: Path

    @property
    def jobcomp(self) -> Path:
        """Where slurmctld writes a line for each job that ended."""
        return self.directory / "jobcomp.txt"

    @property
    def log(self) -> Path:
        """Where slurmctld writes its log."""
        return self.directory / "log" / "slurmctld.log"

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="gpuwaste-engine-"))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, argv: Sequence[str], *, played: bool = False) -> Output:
        """Run one of Slurm's commands, with the played clock for what a job inherits. Raises SlurmError."""
        env = {**self._env(), **(self.clock.env if played else {})}
        return run_command(argv, env, _ANSWER_S, _MOST_OUTPUT_B)

    def require_alive(self) -> None:
        """Raise SlurmError where a daemon ended."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise SlurmError(f"{name} ended with status {process.returncode}: {self._said(name)}")

    def stop(self) -> None:
        """End every process of the cluster, its jobs included, and remove its directory."""
        left = sweep(self._marker, self.directory)
        with contextlib.suppress(AttributeError):  # it did not start
            self.clock.close()
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
        shutil.rmtree(self.directory, ignore_errors=True)
        self._release()
        if left:
            raise SlurmError(f"processes of the engine still run after SIGKILL: pid {', '.join(map(str, left))}")

    def _start(self) -> None:
        for name in ("munge", "state", "spool", "log", "gpu"):
            (self.directory / name).mkdir(mode=0o700)
        self.clock = FastClock(self._speed, self._env())
        self._watch()
        self._write()
        self._start_munged()
        self._spawn("slurmctld", ["slurmctld", "-D"], played=True)
        self._await("slurmctld to answer", lambda: self.run(["scontrol", "ping"]).stdout.find(b"is UP") > 0, _BOOT_S)
        up = [node for node in self.model.nodes if not node.down]
        for node in up:
            (self.directory / "spool" / node.name).mkdir(mode=0o700)
            self._spawn(f"slurmd-{node.name}", ["slurmd", "-D", "-N", node.name], played=True)
        self._await(f"{len(up)} nodes to be idle", lambda: self._idle() == len(up), _BOOT_S + _BOOT_NODE_S * len(up))

    def _watch(self) -> None:
        words = [self._marker, str(self.directory), self.clock.env.get("FAKETIME_SHARED", "")]
        self._reaper = subprocess.Popen(
            [sys.executable, "-m", "gpuwaste.sim.real.reaper", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": search_path(), "PYTHONPATH": ":".join(path for path in sys.path if path)},
            start_new_session=True,
            cwd="/",
            pass_fds=(self.clock.keeper_pipe,),
        )

    def _release(self) -> None:
        if self._reaper is not None and self._reaper.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._reaper.stdin.write(b"done\n")
                self._reaper.stdin.close()
            self._reaper.wait(_ANSWER_S)

    def _write(self) -> None:
        ports = free_ports(len(self.model.nodes) + 1)
        place = conf.Place(self.directory, _user(), ports[0], ports[1:])
        texts = {
            "slurm.conf": conf.slurm_conf(self.model, place, self._speed, jobs=self._jobs, memory=self._memory),
            "gres.conf": conf.gres_conf(self.model, place),
            "cgroup.conf": conf.cgroup_conf(self.version),
        }
        for name, text in texts.items():
            (self.directory / name).write_text(text, encoding="ascii")
        for number in range(conf.gpu_files(self.model)):
            (self.directory / "gpu" / str(number)).touch()

    def _start_munged(self) -> None:
        base = self.directory / "munge"
        key = base / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(_KEY_B))
        places = {"key-file": "key", "socket": "s", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        words = [f"--{option}={base / name}" for option, name in places.items()]
        self._spawn("munged", ["munged", "--foreground", "--force", f"--num-threads={_MUNGE_THREADS}", *words])
        self._await("munged to answer", (base / "s").exists, _BOOT_S)

    def _env(self) -> dict[str, str]:
        return {
            "PATH": search_path(),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(self.directory),
            "SLURM_CONF": str(self.directory / "slurm.conf"),
            MARKER: self._marker,
        }

    def _spawn(self, name: str, argv: Sequence[str], *, played: bool = False) -> None:
        env = {**self._env(), **(self.clock.env if played else {})}
        with (self.directory / "log" / f"{name}.out").open("ab") as output:
            try:
                self._processes[name] = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=env,
                    cwd=self.directory,
                    start_new_session=True,
                )
            except OSError as error:
                raise SlurmError(f"{argv[0]}: cannot be started: {error.strerror}") from error

    def _await(self, what: str, holds: Callable[[], bool], patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while not holds():
            self.require_alive()
            if time.monotonic() > deadline:
                raise SlurmError(f"waited {patience_s:g} s for {what}: {self._said('slurmctld')}")
            time.sleep(_POLL_S)

    def _idle(self) -> int:
        done = self.run(["sinfo", "-h", "-N", "-o", "%N %T"])
        rows = {line.split()[0]: line.split()[1] for line in done.stdout.decode().splitlines() if len(line.split()) > 1}
        return sum(state.startswith("idle") and not state.endswith("*") for state in rows.values())

    def _said(self, name: str) -> str:
        try:
            data = (self.directory / "log" / f"{name}.out").read_bytes()[-_TAIL_B:]
        except OSError:
            data = b""
        return last_line(data) or "no message in its log"


def free_ports(count: int) -> tuple[int, ...]:
    """Return ports of the loopback address that are free now, from a random one on. Raises SlurmError."""
    first = secrets.randbelow(len(_PORTS))
    found: list[int] = []
    for step in range(len(_PORTS)):
        port = _PORTS[(first + step) % len(_PORTS)]
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return tuple(found)
    raise SlurmError(f"fewer than {count} free ports on 127.0.0.1 from {_PORTS.start} to {_PORTS.stop - 1}")


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return getpass.getuser()

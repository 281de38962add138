"""A clock that runs faster, for all processes of a run: libfaketime with one shared origin.

faketime's wrapper makes the origin, which each process that gets its environment shares; it is kept until `close`.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Final, Self

from gpuwaste.core.errors import GpuwasteError, SlurmError
from gpuwaste.sim.real.reaper import remove_origin
from gpuwaste.slurm.clients.command import run_command

_NAMES: Final = ("LD_PRELOAD", "FAKETIME", "FAKETIME_SHARED")
_MOST_LINES: Final = 10_000
_READINGS: Final = 5
_PATIENCE_S: Final = 20.0
NEEDED: Final = ("slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "munged", "faketime")
SEARCHED: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_VERSION: Final = re.compile(r"(\d+\.\d+(?:\.\d+)?)")


class FastClock:
    """The played clock: `env` for processes that use it, `now` in UTC seconds, `speed` in its seconds a second."""

    def __init__(self, speed: int, base_env: Mapping[str, str]) -> None:
        """Start it at the present instant. Raises SlurmError where faketime does not work."""
        self.speed = speed
        self.env: dict[str, str] = {}
        wrapper = ["faketime", "-m", "-f", f"+0 x{speed}", "sh", "-c", "env; echo; exec cat"]
        try:
            self._keeper = subprocess.Popen(
                wrapper,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=dict(base_env),
                start_new_session=True,
            )
        except OSError as error:
            raise SlurmError(f"faketime: cannot be started: {error.strerror}") from error
        try:
            self.env = self._learned()
            self._fake_s, self._real_s = self._calibrated(base_env)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def now(self) -> float:
        """Return the played clock's UTC seconds."""
        return self._fake_s + (time.monotonic() - self._real_s) * self.speed

    def wait(self, until: float, most_s: float) -> bool:
        """Sleep until the played clock is at `until`, at most that many real seconds; return whether it is there."""
        left = (until - self.now()) / self.speed
        if left > 0:
            time.sleep(min(left, most_s))
        return self.now() >= until

    @property
    def keeper_pipe(self) -> int:
        """The pipe that keeps the shared origin: a process that inherits it keeps the origin until it ends."""
        assert self._keeper.stdin is not None  # noqa: S101 narrows the type: it is a pipe
        return self._keeper.stdin.fileno()

    def close(self) -> None:
        """End the wrapper, which removes the shared origin; processes that have it continue."""
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        if self._keeper.stdout is not None:
            self._keeper.stdout.close()
        try:
            self._keeper.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        remove_origin(self.env.get("FAKETIME_SHARED", ""))

    def _learned(self) -> dict[str, str]:
        assert self._keeper.stdout is not None  # noqa: S101 narrows the type: it is a pipe
        found = {}
        for _ in range(_MOST_LINES):
            line = self._keeper.stdout.readline().decode("utf-8", "surrogateescape").rstrip("\n")
            name, equals, value = line.partition("=")
            if equals and name in _NAMES:
                found[name] = value
            if not line:
                break
        if set(found) != set(_NAMES):
            raise SlurmError("faketime: no shared clock in its environment: install libfaketime 0.9.8 or later")
        return found

    def _calibrated(self, base_env: Mapping[str, str]) -> tuple[float, float]:
        """Return an instant of the played clock and of the monotonic one: the reading that took the least time."""
        readings = []
        for _ in range(_READINGS):
            before = time.monotonic()
            done = run_command(["date", "+%s.%N"], {**base_env, **self.env}, _PATIENCE_S, 100)
            after = time.monotonic()
            readings.append((after - before, float(done.stdout or b"nan"), (before + after) / 2))
        _, fake, real = min(readings)
        if not fake > 0:
            raise SlurmError("date: no time printed under faketime")
        return fake, real


def search_path() -> str:
    """Return PATH with the folders in which daemons are installed."""
    return ":".join(dict.fromkeys([*filter(None, os.get_exec_path()), *SEARCHED]))


def require_programs(which: Callable[[str], str | None] | None = None) -> None:
    """Raise GpuwasteError that names each program that is missing here."""
    found = which or (lambda name: shutil.which(name, path=search_path()))
    missing = [name for name in NEEDED if found(name) is None]
    if missing:
        raise GpuwasteError(
            f"--engine slurmctld: not installed on this host: {', '.join(missing)}:"
            " install Slurm (slurmctld, slurmd and its commands), munge and libfaketime"
        )


def slurm_version() -> str:
    """Return slurmctld's version, such as 22.05.8. Raises SlurmError."""
    done = run_command(["slurmctld", "-V"], {"PATH": search_path()}, _PATIENCE_S, 1000)
    found = _VERSION.search(done.stdout.decode("ascii", "replace"))
    if found is None:
        raise SlurmError(f"slurmctld -V: no version in {done.stdout[:60]!r}")
    return found[1]

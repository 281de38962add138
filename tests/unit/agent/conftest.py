"""What the agent's tests share: a clock that stands still, collectors that say what they are told, a simulated NVML."""

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.agent.model import GpuIdentity, GpuScan, HostUse, JobMap
from gpuwaste.testing.simnvml import build_native, library_env

START_US = 1_767_225_600_000_000  # 2026-01-01 00:00 UTC


@dataclass
class FakeClock:
    """Time that moves by `wait` alone."""

    now_us: int = START_US
    steady_us: int = 0
    waits: list[float] = field(default_factory=list)
    on_wait: Callable[[], None] | None = None

    def utc_us(self) -> int:
        return self.now_us

    def mono_us(self) -> int:
        return self.steady_us

    def advance(self, seconds: float) -> None:
        self.now_us += round(seconds * 1e6)
        self.steady_us += round(seconds * 1e6)

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        if stop.is_set():
            return True
        self.waits.append(seconds)
        self.advance(seconds)
        if self.on_wait:
            self.on_wait()
        return stop.is_set()


class FakeGpus:
    """A GPU collector that answers what it is given: a scan, or an error to raise."""

    def __init__(self, name: str, answer: GpuScan | Exception) -> None:
        self.name = name
        self.answer = answer
        self.scans = 0
        self.closed = 0

    def scan(self) -> GpuScan:
        self.scans += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.closed += 1


class FakeHost:
    """A host collector that answers what it is given."""

    name = "host"

    def __init__(self, answer: dict[int, HostUse] | Exception) -> None:
        self.answer = answer

    def use(self) -> dict[int, HostUse]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        pass


class FakeMap:
    """A device map that knows what it is told."""

    def __init__(self, jobs: JobMap | None = None) -> None:
        self.jobs = jobs or JobMap()
        self.asked: list[tuple[int, tuple[GpuIdentity, ...], dict[str, frozenset[int]]]] = []

    def update(self, now_us: int, gpus: Any, pids: Any) -> JobMap:
        self.asked.append((now_us, tuple(gpus), dict(pids)))
        return self.jobs


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
def native() -> Path:
    """Build the simulated NVML once."""
    return build_native()


@pytest.fixture
def in_process(native: Path) -> Callable[..., str]:
    """Return a function that runs a Python script with the simulated library on the loader's path."""

    def run(script: str, *arguments: str, env: dict[str, str]) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env={**library_env(native), "PATH": "/usr/bin:/bin", **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run

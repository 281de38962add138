"""Fixtures of the agent's tests with processes: the simulated NVML in a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwaste.testing.patience import patient
from gpuwaste.testing.simnvml import build_native, library_env


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
            timeout=patient(60),
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run

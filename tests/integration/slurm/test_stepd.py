"""Local facts about steps: sockets and pids."""

import os
import socket
from pathlib import Path

import pytest

from gpuwaste.agent.step_daemons import BATCH_STEP, scan_steps
from gpuwaste.core.errors import SlurmError


def _socket(path: Path) -> None:
    made = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is limited to 108 bytes
    try:
        made.bind(path.name)
    finally:
        os.chdir(here)
        made.close()


@pytest.mark.parametrize(("node", "jobs"), [("gpu", {7}), ("gpu_1", {8}), ("gpu.x", {9}), ("gp", set())])
def test_finds_the_sockets_of_exactly_this_node(tmp_path: Path, node: str, jobs: set[int]) -> None:
    """Node names that begin alike, or hold _ and dots, are told apart."""
    for name in (f"gpu_7.{BATCH_STEP}", "gpu_1_8.0", "gpu.x_9.0.1", "gpu_x.0", "gpu_5.0x"):
        _socket(tmp_path / name)
    (tmp_path / "gpu_6.0").touch()  # a file that is no socket
    assert {step.job_id for step in scan_steps(tmp_path, node)} == jobs


def test_names_step_and_time(tmp_path: Path) -> None:
    """The step's number, and when the socket was made."""
    _socket(tmp_path / "gpu_7.0")
    (step,) = scan_steps(tmp_path, "gpu")
    assert step.step_id == 0
    assert step.mtime_us == (tmp_path / "gpu_7.0").stat().st_mtime_ns // 1000


def test_an_unreadable_directory_is_an_error(tmp_path: Path) -> None:
    """No directory is not the same as no job."""
    with pytest.raises(SlurmError, match="spool"):
        scan_steps(tmp_path / "none", "gpu")

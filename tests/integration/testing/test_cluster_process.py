"""Processes of a cluster: known by pid and start time, found by their marker."""

import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from gpuwaste.testing.cluster_process import MARKER, ClusterError, ManagedProcess, marked, spawn, start_ticks, sweep


def _spawn(tmp_path: Path, script: str, env: dict[str, str] | None = None) -> ManagedProcess:
    whole = {"PATH": os.environ["PATH"], **(env or {})}
    return spawn("program", ["sh", "-c", script], [tmp_path / "log"], whole, tmp_path)


def test_a_recycled_pid_is_not_taken_for_the_daemon() -> None:
    """A live process with another start time is not ours, and is not signalled."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        start = start_ticks(other.pid)
        assert start is not None
        assert ManagedProcess("x", other.pid, start).alive()
        stale = ManagedProcess("x", other.pid, start - 1)
        stale.kill()
        assert not stale.alive()
        assert other.poll() is None
        other.communicate(b"\n")


def test_waiting_for_a_program_that_ends_shows_its_log(tmp_path: Path) -> None:
    """The error has the exit status and the last lines of the log."""
    process = _spawn(tmp_path, "echo no such device; exit 3")
    with pytest.raises(ClusterError, match=r"(?s)status 3.*no such device"):
        process.wait_for(lambda: False)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing command is one clear error."""
    with pytest.raises(ClusterError, match="no command 'nowhere-to-be-found'"):
        spawn("x", ["nowhere-to-be-found"], [tmp_path / "log"], {"PATH": "/bin"}, tmp_path)


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """Stop falls back on SIGKILL after its time."""
    process = _spawn(tmp_path, "trap '' TERM; echo ready; while :; do sleep 1; done")
    process.wait_for(lambda: "ready" in (tmp_path / "log").read_text())
    process.stop(timeout_s=0.1)
    assert process.returncode == -9


def test_the_sweep_ends_a_slurmstepd_whose_title_covers_its_environment(tmp_path: Path) -> None:
    """A slurmstepd without any marker is the cluster's in whose directory it works, and no other's."""
    program = tmp_path / "slurmstepd"
    program.symlink_to(shutil.which("sleep") or "")
    stray = subprocess.Popen([program, "60"], env={}, cwd=tmp_path)
    try:
        assert marked(uuid.uuid4().hex, tmp_path / "other") == []
        sweep(uuid.uuid4().hex, tmp_path)
        assert stray.wait(10) == -signal.SIGKILL
    finally:
        stray.kill()
        stray.wait()


def test_the_sweep_ends_marked_processes_and_what_they_started(tmp_path: Path) -> None:
    """A child that dropped the marker from its environment is found through its parent; others are left alone."""
    mine = uuid.uuid4().hex
    other = _spawn(tmp_path, "exec sleep 60", {MARKER: "another"})
    parent = _spawn(tmp_path, f"env -u {MARKER} sleep 60 & echo $!; wait", {MARKER: mine})
    parent.wait_for(lambda: (tmp_path / "log").read_text().strip() != "")
    child = int((tmp_path / "log").read_text())
    assert {parent.pid, child} <= set(marked(mine))
    sweep(mine)
    assert marked(mine) == []
    assert not parent.alive()
    assert start_ticks(child) is None
    assert other.alive()
    other.kill()

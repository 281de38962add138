"""What a run of Slurm's own daemons leaves is found and ended, also what carries no marker any more."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from gpuwaste.sim.real.reaper import MARKER, marked, sweep


def _start(program: str | Path, directory: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([program, "60"], env=env, cwd=directory)


def test_sweep_ends_the_run_s_processes_alone(tmp_path: Path) -> None:
    """Its marker, or for a slurmstepd its directory, makes a process the run's; no other process is ended."""
    sleep = shutil.which("sleep") or ""
    step = tmp_path / "slurmstepd"
    step.symlink_to(sleep)
    mine, others = tmp_path / "mine", tmp_path / "others"
    for folder in (mine, others):
        folder.mkdir()
    ours = [_start(sleep, others, {MARKER: "run"}), _start(step, mine, {})]
    theirs = [_start(sleep, mine, {MARKER: "another"}), _start(sleep, mine, {}), _start(step, others, {})]
    try:
        assert sweep("run", mine) == []
        assert [process.wait(10) for process in ours] == [-signal.SIGKILL] * len(ours)
        assert [process.poll() for process in theirs] == [None] * len(theirs)
        assert os.getpid() not in marked("run", mine)
    finally:
        for process in (*ours, *theirs):
            process.kill()
            process.wait()

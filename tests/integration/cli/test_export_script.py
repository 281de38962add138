"""The script of `gpuwaste export sacctmgr`, run by sh with a stand-in for sacctmgr."""

import subprocess
from pathlib import Path

import pytest
from tests.unit.show.documents import one_job, read

from gpuwaste.ledger.exports import sacctmgr


@pytest.mark.parametrize(
    ("printed", "taken"),
    [
        ("slurm-wlm 22.05.8", False), ("slurm 20.11.9", False), ("slurm 19.05.1", False), ("", False),
        ("sacctmgr: error", False), ("slurm 23.02.0", True), ("slurm-wlm 24.11.5", True), ("slurm 30.05.0-rc1", True),
    ],
)  # fmt: skip
def test_the_script_refuses_a_slurm_that_would_change_the_text(printed: str, taken: bool, tmp_path: Path) -> None:
    """Before 23.02 sacctmgr writes lower case: nothing is written, with one line that says why."""
    document = read(one_job("7"))
    program = tmp_path / "sacctmgr"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = -V ] && echo '{printed}' || echo written >>{tmp_path}/log\n")
    program.chmod(0o755)
    (line,) = sacctmgr.lines(document.runs, document)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", sacctmgr.HEADER + line], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode == 0, (tmp_path / "log").exists()) == (taken, taken)
    assert len(done.stderr.splitlines()) == (0 if taken else 1)

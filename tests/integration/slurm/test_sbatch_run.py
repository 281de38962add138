"""The start that `sbatch --test-only` expects, in the words of each release."""

from pathlib import Path

import pytest

from gpuwaste.slurm.submit.sbatch_run import DryRun, dry_run

_REST = "using 1 processors on nodes gpu[1-2] in partition gpu"


@pytest.mark.parametrize(
    "line",
    [
        f"Job 1 to start at 1795855762 {_REST}",
        f"Job 1 to start at 1795855762 a {_REST}",
        f"Job 1 to start at 1795855762 on cluster gw a {_REST}",
    ],
    ids=["22.05", "26.05", "26.05, another cluster"],
)
def test_start_is_read(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in sbatch's place prints the line as the release does."""
    program = tmp_path / "sbatch"
    program.write_text(f'#!/bin/sh\necho "sbatch: {line}" >&2\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert dry_run(["job.sh"], 10.0) == DryRun(start=1795855762)

"""The matrix of releases: the host's own Slurm always, the others where their trees are or with MATRIX=1."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tools.matrix import trees
from tools.matrix.checks import checks_named
from tools.matrix.releases import RELEASES, Release
from tools.trees import store

from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]  # a cluster for each release

_ROOT = Path(__file__).parents[2]
_BASE = store.folder()


@pytest.fixture(autouse=True)
def _needs_slurm() -> None:
    if reason := cluster_host.missing():
        pytest.skip(reason)


def _matrix(*arguments: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "tools.matrix", *arguments]
    return subprocess.Popen(argv, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _processes_of(folder: Path) -> list[str]:
    """Return the command lines of a cluster's processes: each has the cluster's id in its environment."""
    state = folder / "c" / "cluster.json"
    if not state.exists():
        return []
    needle = f"GPUWASTE_CLUSTER_ID={json.loads(state.read_text())['cluster_id']}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_release(release: Release, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every check of the submit path holds on this release of Slurm."""
    base = _BASE if release.suite else tmp_path_factory.mktemp("matrix")
    if release.suite and (lacks := trees.ready(release, base)) and not os.environ.get("MATRIX"):
        pytest.skip(f"{lacks}: make matrix makes it, or MATRIX=1")
    out = tmp_path_factory.mktemp("out")
    process = _matrix("--dir", str(base), "--out", str(out), "--release", release.name)
    output, _ = process.communicate(timeout=patient(880))
    assert process.returncode == 0, output
    for check in checks_named():
        assert any(line.startswith(check.name) and " ok " in line for line in output.splitlines()), output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_nothing_stays_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    """A matrix that is ended in the middle, even by SIGKILL, leaves no process and no mount."""
    process = _matrix("--dir", str(tmp_path), "--out", str(tmp_path), "--release", "22.05", "--check", "fail_open")
    folder = tmp_path / "22.05.run"
    try:
        wait_until(lambda: any("slurmctld" in line for line in _processes_of(folder)), 120, "slurmctld to be started")
    finally:
        process.send_signal(number)
        process.communicate(timeout=patient(120))
    wait_until(lambda: not _processes_of(folder), 60, "the column to end", lambda: str(_processes_of(folder)))
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")

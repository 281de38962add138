"""`python -m tools.matrix --run`: a command for which another release's Slurm is the host's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.matrix import trees
from tools.matrix.releases import RELEASES, Release
from tools.trees import store

from gpuwaste.testing import cluster_host
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.cluster

_ROOT = Path(__file__).parents[2]
_BASE = store.folder()


def _run(release: Release, *command: str) -> subprocess.CompletedProcess[str]:
    if reason := cluster_host.missing():
        pytest.skip(reason)
    if (lacks := trees.ready(release, _BASE)) and not os.environ.get("MATRIX"):
        pytest.skip(f"{lacks}: make matrix makes it, or MATRIX=1")
    argv = [sys.executable, "-m", "tools.matrix", "--dir", str(_BASE), "--release", release.name, "--run", *command]
    return subprocess.run(argv, cwd=_ROOT, capture_output=True, text=True, timeout=patient(900), check=False)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_slurm_is_the_release_s_for_every_user_and_all_else_is_the_host_s(release: Release) -> None:
    """Daemons, headers and plugins are those of the release, for any user; Python and the host's mounts stay."""
    version = r"grep -o '0x[0-9a-f]*$' /usr/include/slurm/slurm_version.h | head -n 1"
    plugins = "ls /usr/lib/x86_64-linux-gnu/slurm-wlm"
    script = f"slurmctld -V; setpriv --reuid=nobody --clear-groups slurmrestd -V; {version}; {plugins}; python3 -V"
    before = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    done = _run(release, "sh", "-c", script)
    daemon, as_nobody, header, *files, python = done.stdout.splitlines()
    assert daemon.split()[1].startswith(f"{release.name}.")
    assert as_nobody == daemon
    year, month = release.name.split(".")
    assert header.startswith(f"0x{int(year):02x}{int(month):02x}")
    assert {"accounting_storage_slurmdbd.so", "select_cons_tres.so"} <= set(files)
    assert python == subprocess.run(["python3", "-V"], capture_output=True, text=True, check=True).stdout.strip()
    assert Path("/proc/self/mountinfo").read_text(encoding="utf-8") == before


def test_the_command_s_exit_status_is_the_run_s() -> None:
    """A test that fails on a release fails there."""
    assert _run(RELEASES[0], "sh", "-c", "exit 7").returncode == 7

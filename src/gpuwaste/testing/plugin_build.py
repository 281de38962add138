"""Builds the submit plugins for the Slurm of this host, and says where slurmctld finds them."""

import fcntl
import subprocess
from pathlib import Path

from gpuwaste.core.errors import GpuwasteError

_ROOT = Path(__file__).resolve().parents[3]


def build_plugins(out: Path | None = None) -> Path:
    """Build what has changed into `out` (default build/plugins of the checkout) and return that directory.

    It is a PluginDir: job_submit_gpuwaste.so lies in it.
    """
    directory = out or _ROOT / "build" / "plugins"
    directory.mkdir(parents=True, exist_ok=True)
    command = ["make", "--no-print-directory", "-C", str(_ROOT / "plugins" / "job_submit"), "c", f"OUT={directory}"]
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run side by side build once
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GpuwasteError(f"the submit plugin does not build in {directory}: {done.stderr.strip()}")
    return directory

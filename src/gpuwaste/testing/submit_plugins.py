"""Builds the submit plugins from the checkout for a cluster's slurmctld."""

import subprocess
from pathlib import Path

from gpuwaste.core.errors import GpuwasteError

_SOURCES = Path(__file__).resolve().parents[3] / "plugins" / "job_submit"


def build_submit_plugins(out: Path, *targets: str) -> Path:
    """Build targets of plugins/job_submit/Makefile ("c", "lua"; the C plugin alone where none is named) into `out`.

    Returns `out`. Every user can read what is there; the folders above are the caller's.
    """
    command = ["make", "--no-print-directory", "-C", str(_SOURCES), f"OUT={out}", *(targets or ("c",))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GpuwasteError(f"the submit plugins do not build in {out}: {done.stderr.strip()[-2000:]}")
    for path in (out, *out.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return out

"""Builds the submit plugins and what their tests run, from plugins/job_submit into build/plugins/RELEASE."""

import fcntl
import os
import re
import subprocess
from pathlib import Path
from typing import Final

from gpuwaste.testing.cluster_process import ClusterError

_REPOSITORY: Final = Path(__file__).parents[3]
_SOURCE: Final = _REPOSITORY / "plugins" / "job_submit"
_INCLUDE: Final = Path("/usr/include")
_TIMEOUT_S: Final = 300


def build_plugins(*targets: str, out: Path | None = None, slurm_include: Path | None = None) -> Path:
    """Build `targets` (c, lua, harness, fuzz; none: c), warnings as errors, and return the folder they are in.

    `slurm_include` holds slurm/slurm.h of another release than the installed one. Without `out`, each release has a
    folder of its own: a plugin fits one alone, and tests of several releases run in one checkout. Raises ClusterError
    with the compiler's words.
    """
    folder = out or _REPOSITORY / "build" / "plugins" / slurm_number(slurm_include or _INCLUDE)
    argv = ["make", "--no-print-directory", "-C", str(_SOURCE), f"OUT={folder}", "WERROR=-Werror", *(targets or ("c",))]
    if slurm_include is not None:
        argv.append(f"SLURM_INCLUDE={slurm_include}")
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run side by side build once
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env=env)
    if done.returncode:
        raise ClusterError(f"the submit plugins cannot be built: {done.stderr.strip()[-2000:]}")
    return folder


def slurm_number(include: Path) -> str:
    """Return the release of the headers in a folder as they name it, such as "0x160508"; "none" without any."""
    try:
        text = (include / "slurm" / "slurm_version.h").read_text(encoding="utf-8")
    except OSError:
        return "none"
    found = re.search(r"^#define\s+SLURM_VERSION_NUMBER\s+(0x[0-9a-f]{6})", text, re.MULTILINE)
    return found[1] if found else "none"

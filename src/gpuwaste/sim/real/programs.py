"""Programs of Slurm, MUNGE and libfaketime that the engine needs on this host."""

import os
import re
import shutil
from collections.abc import Callable
from typing import Final

from gpuwaste.core.errors import GpuwasteError, SlurmError
from gpuwaste.slurm.clients.command import run_command

NEEDED: Final = ("slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "munged", "faketime")
SEARCHED: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_VERSION: Final = re.compile(r"(\d+\.\d+(?:\.\d+)?)")
_PATIENCE_S: Final = 20.0


def search_path() -> str:
    """Return PATH with the folders in which daemons are installed."""
    return ":".join(dict.fromkeys([*filter(None, os.get_exec_path()), *SEARCHED]))


def require_programs(which: Callable[[str], str | None] | None = None) -> None:
    """Raise GpuwasteError that names each program that is missing here."""
    found = which or (lambda name: shutil.which(name, path=search_path()))
    missing = [name for name in NEEDED if found(name) is None]
    if missing:
        raise GpuwasteError(
            f"--engine slurmctld: not installed on this host: {', '.join(missing)}:"
            " install Slurm (slurmctld, slurmd and its commands), munge and libfaketime"
        )


def slurm_version() -> str:
    """Return slurmctld's version, such as 22.05.8. Raises SlurmError."""
    done = run_command(["slurmctld", "-V"], {"PATH": search_path()}, _PATIENCE_S, 1000)
    found = _VERSION.search(done.stdout.decode("ascii", "replace"))
    if found is None:
        raise SlurmError(f"slurmctld -V: no version in {done.stdout[:60]!r}")
    return found[1]

"""Checks in a child process whether pyslurm can be imported here.

Importing pyslurm loads Slurm's library, which reads slurm.conf and ends the process where there is none: no exception,
only an exit status. So it is imported only after a child of the same interpreter has imported it.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import SlurmError
from gpuwaste.slurm.clients.command import last_line

_MISSING: Final = 3
_PROGRAM: Final = f"""
import importlib.util, sys
if importlib.util.find_spec("pyslurm") is None:
    sys.exit({_MISSING})
import pyslurm
job = getattr(getattr(pyslurm, "db", None), "Job", None)
print(getattr(pyslurm, "__version__", "unknown"), hasattr(job, "allocated_tres"))
"""


@dataclass(frozen=True, slots=True)
class PyslurmFound:
    """A pyslurm that can be imported; `tells_gpus`: its accounting has a job's allocation."""

    version: str
    tells_gpus: bool


def probe_pyslurm(
    environment: Mapping[str, str] | None = None, timeout_s: float = 20.0, python: Sequence[str] = (sys.executable,)
) -> PyslurmFound:
    """Return the pyslurm of this host. Raises SlurmError naming what is missing.

    `python` is the interpreter with its options, `environment` its environment (None: ours).
    """
    try:
        done = subprocess.run(
            [*python, "-c", _PROGRAM],
            capture_output=True,
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ if environment is None else environment),
        )
    except subprocess.TimeoutExpired:
        raise SlurmError(f"pyslurm: import not finished within {timeout_s:g} s: use Slurm's commands") from None
    except OSError as error:
        raise SlurmError(f"pyslurm: {python[0]} cannot be started: {error.strerror}") from error
    if done.returncode == 0:
        version, _, tells_gpus = last_line(done.stdout).rpartition(" ")
        return PyslurmFound(version or "unknown", tells_gpus == "True")
    if done.returncode == _MISSING:
        raise SlurmError("pyslurm is not installed: pip install 'gpuwaste[pyslurm]', or use Slurm's commands")
    words = last_line(done.stderr) or last_line(done.stdout) or "no message"
    raise SlurmError(
        f"pyslurm: the import ended with {_status(done.returncode)}: {words}: "
        "pyslurm needs a slurm.conf and the library of the Slurm release that it was built for"
    )


def _status(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

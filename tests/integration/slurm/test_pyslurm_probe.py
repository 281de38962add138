"""Whether pyslurm can be imported is found out without risk, and said."""

import os
import sys
from pathlib import Path

import pytest

from gpuwaste.core.config import Config
from gpuwaste.core.errors import SlurmError
from gpuwaste.core.site_config import SlurmClientConfig
from gpuwaste.slurm.clients.client_choice import slurm_client
from gpuwaste.slurm.clients.pyslurm_probe import PyslurmFound, probe_pyslurm


def module(folder: Path, text: str) -> dict[str, str]:
    (folder / "pyslurm.py").write_text(text)
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}


def test_pyslurm_that_is_not_there_is_said(tmp_path: Path) -> None:
    """With what to install instead."""
    with pytest.raises(SlurmError, match=r"not installed: pip install 'gpuwaste\[pyslurm\]'"):
        probe_pyslurm({"PATH": os.environ["PATH"]}, python=(sys.executable, "-S", "-I"))


def test_an_import_that_ends_the_process_ends_a_child(tmp_path: Path) -> None:
    """As pyslurm does without a slurm.conf: an exit status and a line on stderr, no exception."""
    environment = module(tmp_path, "import os\nos.write(2, b'fatal: Unable to find slurm.conf\\n')\nos._exit(1)\n")
    with pytest.raises(SlurmError, match=r"with exit code 1: fatal: Unable to find slurm.conf: pyslurm needs"):
        probe_pyslurm(environment)


def test_an_import_that_crashes_is_said(tmp_path: Path) -> None:
    """A library of another release ends in a signal."""
    with pytest.raises(SlurmError, match="with signal 11: no message"):
        probe_pyslurm(module(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"))


def test_an_import_that_hangs_is_given_up(tmp_path: Path) -> None:
    """Slurm's library waits for servers that do not answer."""
    with pytest.raises(SlurmError, match=r"not finished within 0\.5 s"):
        probe_pyslurm(module(tmp_path, "import time\ntime.sleep(60)\n"), timeout_s=0.5)


def test_an_import_that_works_gives_the_version(tmp_path: Path) -> None:
    """And whether accounting tells GPUs: the child's word is what the client relies on."""
    program = "__version__ = '25.11.2'\nclass db:\n    class Job:\n        {} = None\n"
    found = [probe_pyslurm(module(tmp_path, program.format(name))) for name in ("allocated_tres", "cpus")]
    assert found == [PyslurmFound("25.11.2", tells_gpus=gpus) for gpus in (True, False)]


def test_an_interpreter_that_is_missing_is_said() -> None:
    """One line."""
    with pytest.raises(SlurmError, match="/none cannot be started"):
        probe_pyslurm(python=("/none",))


def test_a_pyslurm_that_cannot_be_used_is_an_error_with_its_reason() -> None:
    """No other client takes its place without a word."""
    with pytest.raises(SlurmError, match="pyslurm"):
        slurm_client(Config(slurm=SlurmClientConfig("pyslurm")))

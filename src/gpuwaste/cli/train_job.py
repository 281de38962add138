"""What `gpuwaste train --as-job` does: the same training as a job of the site's Slurm, by sbatch.

The registry and the log are in the registry's directory, which has to be shared with the nodes.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.config import Config
from gpuwaste.core.errors import SlurmError, UsageError
from gpuwaste.core.owner import become_owner
from gpuwaste.core.text import words_of

JOBS: Final = ".jobs"  # below the registry: bundles begin with a letter or digit
NAME: Final = "gpuwaste-train"
_OWN: Final = frozenset({"--as-job"})
_OWN_VALUES: Final = frozenset({"--partition", "--time"})
_ACCOUNTS: Final = frozenset({"-A", "--accounts"})
_JOB_ID: Final = re.compile(r"([0-9]{1,19})(?:;[^\n]{1,200})?", re.ASCII)
_TIMEOUT_S: Final = 60.0
Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def submit_and_tell(options: argparse.Namespace, config: Config, words: Sequence[str]) -> int:
    """Submit and print the job's id. Raises UsageError, SlurmError."""
    models_dir: Path = (options.models_dir or Path(config.common.models_dir)).resolve()
    become_owner(models_dir)  # the job runs as whoever submits it: never as root
    logs = models_dir / JOBS
    try:
        logs.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{logs}: cannot be made: {error.strerror}: --as-job needs a registry on shared disk"
        ) from error
    if config.common.slurm_conf:
        os.environ.setdefault("SLURM_CONF", config.common.slurm_conf)
    job = submitted(command_of(options, logs, words), _run)
    sys.stdout.write(f"submitted as job {job}; log: {logs / f'train-{job}.log'}\n")
    return 0


def command_of(options: argparse.Namespace, logs: Path, words: Sequence[str]) -> list[str]:
    """Return the sbatch command: the same words without those that are about the job itself."""
    argv = [
        *("sbatch", "--parsable", f"--job-name={NAME}", f"--output={_pattern(logs)}/train-%j.log", "--nodes=1"),
        *("--ntasks=1", f"--cpus-per-task={max(1, options.threads)}", f"--time={options.time}", "--nice=1000"),
    ]
    argv += [f"--partition={options.partition}"] if options.partition else []
    argv += [f"--account={options.accounts}"] if options.accounts else []
    again = [sys.executable, "-m", "gpuwaste.cli", *without_own(words)]
    return [*argv, f"--wrap={shlex.join(again)}"]


def without_own(words: Sequence[str]) -> list[str]:
    """Return the words of the command line without --as-job and the options that only it has."""
    kept: list[str] = []
    skip = False
    for word in words:
        name, given, _ = word.partition("=")
        if skip:
            skip = False
        elif name in _OWN_VALUES | _ACCOUNTS:
            skip = not given
        elif word.startswith("-A") and not word.startswith("--"):
            continue
        elif word not in _OWN:
            kept.append(word)
    return kept


def submitted(argv: Sequence[str], run: Run) -> str:
    """Run sbatch and return the job's id. Raises SlurmError."""
    try:
        done = run(argv)
    except FileNotFoundError as error:
        raise SlurmError(
            "train --as-job: no sbatch on PATH: see common.slurm_conf and /etc/gpuwaste/environment"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"train --as-job: sbatch: {words_of(error)}") from error
    found = _JOB_ID.fullmatch(done.stdout.strip())
    if done.returncode or found is None:
        raise SlurmError(f"train --as-job: Slurm did not take the job: {words_of(done.stderr or done.stdout)}")
    return found[1]


def _run(argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, errors="replace")


def _pattern(path: Path) -> str:
    """Return a path for --output: in it, % begins a pattern of sbatch's."""
    return str(path).replace("%", "%%")

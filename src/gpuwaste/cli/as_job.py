"""What `--as-job` does: the command itself as a job of the site's Slurm, by sbatch, with the words that it was given.

What the command reads and writes, its log included, has to be shared with the nodes, and the nodes need gpuwaste.
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
from gpuwaste.core.text import words_of

_OWN_VALUES: Final = frozenset({"--partition", "--time", "-A", "--accounts"})
_JOB_ID: Final = re.compile(r"([0-9]{1,19})(?:;[^\n]{1,200})?", re.ASCII)
_TIMEOUT_S: Final = 60.0
Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def submit_and_tell(options: argparse.Namespace, config: Config, what: str, logs: Path) -> int:
    """Submit the command `what` and print the job's id and log, a file in `logs`. Raises UsageError, SlurmError."""
    try:
        logs.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{logs}: cannot be made: {error.strerror}: --as-job needs it on shared disk") from error
    if config.common.slurm_conf:
        os.environ.setdefault("SLURM_CONF", config.common.slurm_conf)
    job = submitted(command_of(options, what, logs, options.command_line), what, _run)
    sys.stdout.write(f"submitted as job {job}; log: {logs / f'{what}-{job}.log'}\n")
    return 0


def command_of(options: argparse.Namespace, what: str, logs: Path, words: Sequence[str]) -> list[str]:
    """Return the sbatch command: the same words without those that are about the job itself."""
    argv = [
        *("sbatch", "--parsable", f"--job-name=gpuwaste-{what}", f"--output={_pattern(logs)}/{what}-%j.log"),
        *("--nodes=1", "--ntasks=1", f"--cpus-per-task={max(1, options.threads)}", f"--time={options.time}"),
        "--nice=1000",
    ]
    # A document for programs stands alone in its file.
    argv += [f"--error={_pattern(logs)}/{what}-%j.err"] if options.json else []
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
        elif name in _OWN_VALUES:
            skip = not given
        elif word != "--as-job" and not (word.startswith("-A") and not word.startswith("--")):
            kept.append(word)
    return kept


def submitted(argv: Sequence[str], what: str, run: Run) -> str:
    """Run sbatch and return the job's id. Raises SlurmError."""
    try:
        done = run(argv)
    except FileNotFoundError as error:
        raise SlurmError(
            f"{what} --as-job: no sbatch on PATH: see common.slurm_conf and /etc/gpuwaste/environment"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"{what} --as-job: sbatch: {words_of(error)}") from error
    found = _JOB_ID.fullmatch(done.stdout.strip())
    if done.returncode or found is None:
        raise SlurmError(f"{what} --as-job: Slurm did not take the job: {words_of(done.stderr or done.stdout)}")
    return found[1]


def _run(argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, errors="replace")


def _pattern(path: Path) -> str:
    """Return a path for --output: in it, % begins a pattern of sbatch's."""
    return str(path).replace("%", "%%")

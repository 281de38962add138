"""What `--as-job` does: it submits the command itself as a job of the site's Slurm, by sbatch, with the same arguments.

The files that the command reads and writes, its log included, have to be on disk shared with the nodes, and the nodes
need gpuwaste.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.config import Config
from gpuwaste.core.errors import SlurmError, UsageError
from gpuwaste.slurm.submit.sbatch_run import submit

_OWN_VALUES: Final = frozenset({"--partition", "--time", "-A", "--accounts"})
_TIMEOUT_S: Final = 60.0


def submit_and_tell(options: argparse.Namespace, config: Config, what: str, logs: Path) -> int:
    """Submit the command `what` and print the job's id and log, a file in `logs`. Raises UsageError, SlurmError."""
    try:
        logs.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{logs}: cannot be created: {error.strerror}: --as-job needs it on shared disk") from error
    words = sbatch_words(options, what, logs, options.command_line)
    try:
        job = submit(words, _TIMEOUT_S, config.common.slurm_conf)
    except SlurmError as error:
        raise SlurmError(f"{what} --as-job: Slurm rejected the job: {error}") from error
    sys.stdout.write(f"submitted as job {job}; log: {logs / f'{what}-{job}.log'}\n")
    return 0


def sbatch_words(options: argparse.Namespace, what: str, logs: Path, words: Sequence[str]) -> list[str]:
    """Return the words for sbatch: the same ones without those about the job itself."""
    argv = [
        *(f"--job-name=gpuwaste-{what}", f"--output={_pattern(logs)}/{what}-%j.log"),
        *("--nodes=1", "--ntasks=1", f"--cpus-per-task={max(1, options.threads)}", f"--time={options.time}"),
        "--nice=1000",
    ]
    # A document for programs is the only content of its file.
    argv += [f"--error={_pattern(logs)}/{what}-%j.err"] if options.json else []
    argv += [f"--partition={options.partition}"] if options.partition else []
    argv += [f"--account={options.accounts}"] if options.accounts else []
    again = [sys.executable, "-m", "gpuwaste.cli", *without_own(words)]
    return [*argv, f"--wrap={shlex.join(again)}"]


def without_own(words: Sequence[str]) -> list[str]:
    """Return the words of the command line without --as-job and the options that belong to it."""
    kept: list[str] = []
    skip = False
    for word in words:
        name, given, _ = word.partition("=")
        if skip:
            skip = False
        elif name in _OWN_VALUES:
            skip = not given
        elif word != "--as-job" and not word.startswith("-A"):
            kept.append(word)
    return kept


def _pattern(path: Path) -> str:
    """Return a path for --output, where % begins one of sbatch's patterns."""
    return str(path).replace("%", "%%")

"""`sbatch --test-only` and `sbatch` itself: slurmctld's answer to a submission, in the caller's own environment."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import SlurmError
from gpuwaste.core.text import decoded, harmless
from gpuwaste.slurm.clients.command import last_line, run_command

_START: Final = re.compile(  # 26.05 writes "on cluster" and "a using"
    r"Job \d{1,10} to start at (\S{1,40})(?: on cluster \S{1,256})?(?: a)? "
    r"using \d{1,10} processors on nodes \S{1,4096}",
    re.ASCII,
)
_FAILURE: Final = re.compile(r"(?:allocation failure|sbatch: error): *([^\n]{1,400})")
_JOB: Final = re.compile(r"(\d{1,10})(?:;\S{1,256})?\s*", re.ASCII)
_UNREACHABLE: Final = ("unable to contact", "connect", "unable to process configuration", "timed out")
_MAX_OUTPUT_B: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DryRun:
    """slurmctld's answer to a submission: the expected start (UTC seconds), or why it would reject the job.

    `start` is None for a job that is accepted without a start (--quiet, --hold). `rejected` is "" for an accepted one.
    """

    start: int | None = None
    rejected: str = ""


def dry_run(words: Sequence[str], timeout_s: float, slurm_conf: str = "") -> DryRun:
    """Test `sbatch WORDS` without submitting anything. Raises SlurmError where slurmctld does not answer."""
    argv = ("sbatch", "--test-only", *words)
    output = run_command(argv, _environment(slurm_conf, SLURM_TIME_FORMAT="%s"), timeout_s, _MAX_OUTPUT_B)
    said = decoded(output.stderr)
    if output.code == 0:
        found = _START.search(said)
        return DryRun(start=int(found[1]) if found and found[1].isdigit() else None)
    reasons = _FAILURE.findall(said) or [last_line(output.stderr) or f"exit code {output.code}"]
    reason = harmless(reasons[-1]).strip()
    if any(word in reason.lower() for word in _UNREACHABLE):
        raise SlurmError(f"sbatch --test-only: {reason}")
    return DryRun(rejected=reason)


def submit(words: Sequence[str], timeout_s: float, slurm_conf: str = "") -> int:
    """Run `sbatch --parsable WORDS` with the caller's environment and return the job's id. Raises SlurmError."""
    output = run_command(("sbatch", "--parsable", *words), _environment(slurm_conf), timeout_s, _MAX_OUTPUT_B)
    found = _JOB.fullmatch(decoded(output.stdout))
    if output.code or found is None:
        said = harmless(last_line(output.stderr) or last_line(output.stdout)) or f"exit code {output.code}"
        raise SlurmError(f"sbatch rejected the job: {said.removeprefix('sbatch: error: ')}")
    return int(found[1])


def _environment(slurm_conf: str, **more: str) -> dict[str, str]:
    """Return the caller's environment, which the job inherits, with the configured slurm.conf where none is set."""
    own = {"SLURM_CONF": slurm_conf} if slurm_conf and "SLURM_CONF" not in os.environ else {}
    return {**os.environ, **own, **more}

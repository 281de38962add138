"""The key of one run of one job (CONTRACTS.md, "Run key")."""

from dataclasses import dataclass
from typing import Annotated

from gpuwaste.core.codec import PartColumn


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """One run of one job: a requeued job has several.

    `job_id` is Slurm's raw id (arrays and het jobs keep their printed ids as attributes of the JobRecord);
    `start` is the start in UTC seconds, or the submit time of a job that never started.
    """

    cluster: str
    job_id: int
    start: Annotated[int, PartColumn("run_start")]

    def __str__(self) -> str:
        """Print as cluster/jobid@start, for logs."""
        return f"{self.cluster}/{self.job_id}@{self.start}"

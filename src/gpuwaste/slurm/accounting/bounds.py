"""What a run's numbers may be: those that a store can hold. A larger one is damage, and costs its own row alone."""

from typing import Final, TypeVar

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.job import JobRecord

_SMALL: Final = ("restarts", "n_nodes", "cpus", "gpus", "exit_code", "exit_signal")
_LARGE: Final = (
    *("job_id", "submit", "array_job_id", "array_task_id", "het_job_id", "het_offset", "time_limit_s", "start"),
    *("mem_req_b", "end", "elapsed_s", "suspended_s", "total_cpu_s", "max_rss_b"),
)
_LIMITS: Final = (*((name, 1 << 31) for name in _SMALL), *((name, 1 << 62) for name in _LARGE))
_Run = TypeVar("_Run", bound=JobRecord)


def within(job: _Run) -> _Run:
    """Return the run. Raises ParseError naming a number that is beyond any of Slurm's."""
    for name, limit in _LIMITS:
        value = getattr(job, name)
        if value is not None and not -limit < value < limit:
            raise ParseError(f"{name}: {value:.3g} is larger than any number of Slurm's")
    return job

"""JobRecord: one run of one job, its request apart from its outcome, each field marked with when it is known."""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final

from gpuwaste.core.run import RunKey


class KnownAt(StrEnum):
    """The moment from which a field of a JobRecord can be known."""

    SUBMIT = "submit"
    START = "start"
    END = "end"


TERMINAL_STATES: Final = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REQUEUED",
        "REVOKED",
        "TIMEOUT",
    }
)


def _at(when: KnownAt, default: Any = None) -> Any:
    """Declare a field with its default and the moment from which it is known."""
    return field(default=default, metadata={"known_at": when})


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One run of one job as accounting tells it; times are UTC seconds, None is "not known".

    `gpus` is the number of whole GPUs in the allocation (0 for none); `printed_id` is what Slurm's commands print
    (3_1, 4+1).
    """

    cluster: str = field(metadata={"known_at": KnownAt.SUBMIT})
    job_id: int = field(metadata={"known_at": KnownAt.SUBMIT})
    submit: int = field(metadata={"known_at": KnownAt.SUBMIT})
    printed_id: str = _at(KnownAt.SUBMIT, "")
    array_job_id: int | None = _at(KnownAt.SUBMIT)
    array_task_id: int | None = _at(KnownAt.SUBMIT)
    het_job_id: int | None = _at(KnownAt.SUBMIT)
    het_offset: int | None = _at(KnownAt.SUBMIT)
    name: str = _at(KnownAt.SUBMIT, "")
    user: str = _at(KnownAt.SUBMIT, "")
    account: str = _at(KnownAt.SUBMIT, "")
    group: str = _at(KnownAt.SUBMIT, "")
    partition: str = _at(KnownAt.SUBMIT, "")
    qos: str = _at(KnownAt.SUBMIT, "")
    time_limit_s: int | None = _at(KnownAt.SUBMIT)
    req_tres: str = _at(KnownAt.SUBMIT, "")
    submit_line: str = _at(KnownAt.SUBMIT, "")
    interactive: bool = _at(KnownAt.SUBMIT, default=False)  # salloc, or srun without a batch script
    verdict_id: str = _at(KnownAt.SUBMIT, "")  # its last verdict's; Slurm 22.05 tells it in accounting at the end
    start: int | None = _at(KnownAt.START)
    restarts: int | None = _at(KnownAt.START)
    nodes: str = _at(KnownAt.START, "")  # hostlist as printed
    n_nodes: int | None = _at(KnownAt.START)
    cpus: int | None = _at(KnownAt.START)
    gpus: int | None = _at(KnownAt.START)
    gpu_type: str = _at(KnownAt.START, "")
    alloc_tres: str = _at(KnownAt.START, "")
    mem_req_b: int | None = _at(KnownAt.START)
    end: int | None = _at(KnownAt.END)
    elapsed_s: int | None = _at(KnownAt.END)
    suspended_s: int = _at(KnownAt.END, 0)
    state: str = _at(KnownAt.END, "")
    exit_code: int | None = _at(KnownAt.END)
    exit_signal: int | None = _at(KnownAt.END)
    total_cpu_s: float | None = _at(KnownAt.END)
    max_rss_b: int | None = _at(KnownAt.END)

    @property
    def run_key(self) -> RunKey:
        """The run's identity: by start, or by submit where it never started."""
        return RunKey(self.cluster, self.job_id, self.submit if self.start is None else self.start)

    @property
    def ended(self) -> bool:
        """Whether the state is terminal."""
        return self.state in TERMINAL_STATES


def known_at(name: str) -> KnownAt:
    """Return the moment from which the named field of a JobRecord is known."""
    marks: dict[str, KnownAt] = {f.name: f.metadata["known_at"] for f in fields(JobRecord)}
    return marks[name]

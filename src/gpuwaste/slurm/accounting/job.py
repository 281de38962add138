"""JobRecord: one run of one job, its request apart from its outcome, each field marked with when it is known."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from gpuwaste.core.codec import Int64, Number, annotated
from gpuwaste.core.job_states import ENDED
from gpuwaste.slurm.run import RunKey


class KnownAt(StrEnum):
    """The moment from which a field of a JobRecord can be known."""

    SUBMIT = "submit"
    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One run of one job as accounting tells it; None is "not known"."""

    cluster: Annotated[str, KnownAt.SUBMIT]
    job_id: Annotated[Int64, KnownAt.SUBMIT]
    submit: Annotated[Int64, KnownAt.SUBMIT, Meta(description="UTC seconds.")]
    printed_id: Annotated[str, KnownAt.SUBMIT, Meta(description="What Slurm's commands print: 3_1, 4+1.")] = ""
    array_job_id: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    array_task_id: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    het_job_id: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    het_offset: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    name: Annotated[str, KnownAt.SUBMIT] = ""
    user: Annotated[str, KnownAt.SUBMIT] = ""
    account: Annotated[str, KnownAt.SUBMIT] = ""
    group: Annotated[str, KnownAt.SUBMIT] = ""
    partition: Annotated[str, KnownAt.SUBMIT] = ""
    qos: Annotated[str, KnownAt.SUBMIT] = ""
    time_limit_s: Annotated[Int64 | None, KnownAt.SUBMIT] = None
    req_tres: Annotated[str, KnownAt.SUBMIT] = ""
    submit_line: Annotated[str, KnownAt.SUBMIT] = ""
    interactive: Annotated[bool, KnownAt.SUBMIT] = False  # salloc, or srun without a batch script
    # Its last verdict\'s; Slurm 22.05 tells it in accounting at the end.
    verdict_id: Annotated[str, KnownAt.SUBMIT] = ""
    start: Annotated[Int64 | None, KnownAt.START, Meta(description="UTC seconds.")] = None
    restarts: Annotated[Int64 | None, KnownAt.START] = None
    nodes: Annotated[str, KnownAt.START, Meta(description="The hostlist as printed.")] = ""
    n_nodes: Annotated[Int64 | None, KnownAt.START] = None
    cpus: Annotated[Int64 | None, KnownAt.START] = None
    gpus: Annotated[Int64 | None, KnownAt.START, Meta(description="Whole GPUs in the allocation, 0 for none.")] = None
    gpu_type: Annotated[str, KnownAt.START] = ""
    alloc_tres: Annotated[str, KnownAt.START] = ""
    mem_req_b: Annotated[Int64 | None, KnownAt.START] = None
    end: Annotated[Int64 | None, KnownAt.END, Meta(description="UTC seconds.")] = None
    elapsed_s: Annotated[Int64 | None, KnownAt.END] = None
    suspended_s: Annotated[Int64, KnownAt.END] = 0
    state: Annotated[str, KnownAt.END] = ""
    exit_code: Annotated[Int64 | None, KnownAt.END] = None
    exit_signal: Annotated[Int64 | None, KnownAt.END] = None
    total_cpu_s: Annotated[Number | None, KnownAt.END] = None
    max_rss_b: Annotated[Int64 | None, KnownAt.END] = None

    @property
    def run_key(self) -> RunKey:
        """The run's identity: by start, or by submit where it never started."""
        return RunKey(self.cluster, self.job_id, self.submit if self.start is None else self.start)

    @property
    def ended(self) -> bool:
        """Whether the state is terminal."""
        return self.state in ENDED


def known_at(name: str) -> KnownAt:
    """Return the moment from which the named field of a JobRecord is known."""
    moments: dict[str, KnownAt] = {field.name: marks[0] for field, _, marks in annotated(JobRecord)}
    return moments[name]

"""The types of one job's document: its runs with their devices, its advice, and the runs on the same nodes.

Units are those of report_types.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, field
from msgspec.structs import fields

from gpuwaste.core.fields import (
    Document,
    GpuSeconds,
    Interval,
    MaybeBytes,
    MaybeRatio,
    MaybeUtc,
    Recorded,
    Seconds,
    Table,
    Utc,
)
from gpuwaste.ledger.energy.energy_types import EnergyCost
from gpuwaste.ledger.reports.report_tables import device_table
from gpuwaste.ledger.reports.report_types import SCHEMA, FindingRow, GpuTime, Percent, Thresholds

if TYPE_CHECKING:

    class RunTime(GpuTime, kw_only=True, frozen=True):
        """The sums of one run; empty where it has not started."""

else:
    RunTime = defstruct(
        "RunTime", [(part.name, part.type | UnsetType, UNSET) for part in fields(GpuTime)], kw_only=True, frozen=True
    )
    RunTime.__doc__ = "The sums of one run; empty where it has not started."


class DeviceRow(GpuTime, frozen=True):
    """One GPU of a run."""

    node: Annotated[str | None, Meta(description="null: no agent reported the GPU.")]
    gpu_uuid: Annotated[str | None, Meta(description="null: no agent reported the GPU.")]
    share: Annotated[float, Meta(description="The part of the GPU that the run held, 0 to 1.")]
    t0: Annotated[float | None, Meta(description="When the agent first saw it held, UTC seconds.")]
    t1: Annotated[float | None, Meta(description="When the agent last saw it held, UTC seconds.")]
    level: Annotated[str, Meta(description="The level of its mean: none, low, moderate, high, unknown.")]
    untouched: Annotated[bool, Meta(description="Whether no process was ever seen on the GPU.")]
    provisional: bool
    final: Annotated[bool | None, Meta(description="Whether its last hour was reported.")]
    under_used: Annotated[bool | None, Meta(description="null: the rule does not apply.")]
    proc_seen: bool | None
    mem_max_b: MaybeBytes
    mem_total_b: MaybeBytes
    last_active: Annotated[float | None, Meta(description="UTC seconds; null: never.")]
    power_w_at_full: Annotated[float | None, Meta(description="Watts at 95 % utilization and more.")]
    sm_ratio_at_full: Annotated[float | None, Meta(description="Busy SMs at 95 % utilization and more, 0 to 1.")]
    over_s: Annotated[float, Meta(description="Reported seconds outside of accounting's interval.")]
    map_source: Annotated[str, Meta(description="Source by which the agent knows that the run held it.")]
    confidence: str
    profiled_s: Annotated[float | None, Meta(description="Seconds in which profiling was read; null: none.")] = None
    sm_active: Annotated[float | None, Meta(description="Mean share of SMs with work in profiled_s, 0 to 1.")] = None
    tensor_active: Annotated[float | None, Meta(description="Mean activity of the tensor cores, 0 to 1.")] = None
    dram_active: Annotated[float | None, Meta(description="Mean activity of GPU memory, 0 to 1.")] = None
    nvlink_b: Annotated[int | None, Meta(description="Bytes over NVLink in profiled_s, both ways.")] = None
    pcie_b: Annotated[int | None, Meta(description="Bytes over PCIe in profiled_s, both ways.")] = None


class AccountedRow(Struct, kw_only=True, frozen=True):
    """What accounting itself has of the use of a run's GPUs: means over the run, never hours."""

    source: Annotated[
        str, Meta(description="jobstats (its text in AdminComment) or slurm (gres/gpuutil, gres/gpumem).")
    ]
    node: Annotated[str | None, Meta(description="null: of the whole run.")]
    gpu: Annotated[str | None, Meta(description="The GPU's number on its node; null: all together.")]
    mean_pct: Annotated[float | None, Meta(description="Mean utilization over the run, percent.")]
    peak_pct: Annotated[
        float | None, Meta(description="Largest reading, percent; of Slurm of one or several GPUs of a task together.")
    ]
    gpu_mem_max_b: MaybeBytes
    gpu_mem_total_b: MaybeBytes
    cpus: Annotated[int | None, Meta(description="CPUs on the node; the same for each of its GPUs.")]
    cpu_s: Annotated[float | None, Meta(description="CPU seconds used on the node; the same for each of its GPUs.")]
    mem_max_b: Annotated[int | None, Meta(description="Largest memory in use on the node, bytes.")]
    mem_total_b: Annotated[int | None, Meta(description="Memory of the run on the node, bytes.")]


class SourceCheck(Struct, kw_only=True, frozen=True):
    """The mean utilization of a run's GPUs by both sources, where agents and jobstats have all of them."""

    agent_mean_pct: Annotated[float, Meta(description="By the agents, percent.")]
    jobstats_mean_pct: Annotated[float, Meta(description="By jobstats, percent.")]
    difference_pct: Annotated[float, Meta(description="The agents' less jobstats', percentage points.")]


class RunRow(Struct, kw_only=True, frozen=True):
    """One run of a job: accounting's facts, its sums, its devices."""

    cluster: str
    printed_id: Annotated[str, Meta(description="As Slurm prints it.")] = field(name="jobid")
    job_id: int = field(name="raw_id")
    name: str
    user: str
    account: str
    partition: str
    qos: str
    whole_node: Annotated[bool, Meta(description="Whether its partition allocates entire nodes.")]
    state: str
    running: bool
    restarts: int | None
    interactive: bool
    submit: Utc
    start: MaybeUtc
    end: MaybeUtc
    elapsed_s: Annotated[int | None, Meta(description="Seconds.")]
    suspended_job_s: Seconds
    time_limit_s: Annotated[int | None, Meta(description="Seconds.")]
    nodes: Annotated[str, Meta(description="A hostlist.")]
    cpus: int | None
    gpus: int | None
    gpus_beyond: Annotated[int, Meta(description="GPUs that agents reported but accounting did not allocate.")]
    gpu_type: str
    exit_code: int | None
    exit_signal: int | None
    cpu_efficiency: MaybeRatio
    memory_efficiency: MaybeRatio
    mem_req_b: MaybeBytes
    max_rss_b: MaybeBytes
    totals: RunTime
    devices: list[DeviceRow]
    shared: Annotated[list[DeviceRow], Meta(description="GPUs of which the run held a share.")]
    energy: Annotated[EnergyCost | None, Meta(description="Of its own GPUs; null: none was measured.")] = None
    accounted: Annotated[list[AccountedRow], Meta(description="What accounting has of their use.")] = []
    check: Annotated[SourceCheck | None, Meta(description="null: not both sources have the run.")] = None


class Advice(Struct, kw_only=True, frozen=True):
    """The advice on a job when it was submitted or modified; operators see the fields from `said` on."""

    at: Utc
    op: str
    action: str
    lines: list[str]
    p: Annotated[Mapping[str, float] | UnsetType, Meta(description="Probability by target, 0 to 1.")] = UNSET
    started: Annotated[MaybeUtc | UnsetType, Meta(description="The job's first start.")] = UNSET
    expected_start: Annotated[Interval | UnsetType, Meta(description="The start that was expected.")] = UNSET
    expected_end: Annotated[Interval | UnsetType, Meta(description="The end that was expected.")] = UNSET
    said: Annotated[bool | UnsetType, Meta(description="Whether the user got this advice.")] = UNSET
    policy: str | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    would_be: str | UnsetType = UNSET
    held: Annotated[str | UnsetType, Meta(description="Why it was held back; empty: it was not.")] = UNSET


class HourCell(Struct, kw_only=True, frozen=True):
    """What one GPU did in a stretch of time."""

    t0: Annotated[float, Meta(description="UTC seconds.")]
    t1: Annotated[float, Meta(description="UTC seconds.")]
    known_s: GpuSeconds
    mean_util_pct: Percent


class PartOfRun(Struct, kw_only=True, frozen=True):
    """What a row of the job's document about one run begins with."""

    cluster: str
    job_id: int = field(name="raw_id")
    start: Annotated[int, Meta(description="Of the run, UTC seconds.")]


class DeviceHours(PartOfRun, kw_only=True, frozen=True):
    """One GPU of a run over time; what no cell has was not reported."""

    node: str
    gpu_uuid: str
    cells: list[HourCell]


class SaidAgain(PartOfRun, kw_only=True, frozen=True):
    """What was predicted of a run after its submission."""

    at: Utc
    moment: Annotated[str, Meta(description="start, early (10 minutes later), or limit (before the time limit).")]
    p: Annotated[Mapping[str, float], Meta(description="Probability by target, 0 to 1.")]
    limit_p: Annotated[
        float | None, Meta(description="Probability of the time limit, given the run time so far; limit only.")
    ]
    limit_at: Annotated[MaybeUtc, Meta(description="When the time limit is reached; limit only.")]
    usual: Annotated[bool, Meta(description="Whether all of the user's last jobs like it reached their limits.")]


AppealKind = Literal["judgement", "verdict", "action"]


class Appeal(Struct, kw_only=True, frozen=True):
    """What the owner of runs says of their judgement, of advice or of an action, and the reply."""

    id: str
    kind: Annotated[AppealKind, Meta(description="The figures of the job, advice at sbatch, or an action of a rule.")]
    about: Annotated[str, Meta(description="Id of the verdict or action; empty: the figures of the job.")]
    printed_id: Annotated[str, Meta(description="Of the first of the runs; empty: the job was rejected at sbatch.")]
    user: str
    at_utc: Utc
    words: str
    runs: Annotated[int, Meta(description="Of how many runs.")]
    evidence: Annotated[str, Meta(description="What was known then, as JSON; empty for users.")]
    status: Literal["open", "closed"]
    outcome: Annotated[Literal["", "upheld", "dismissed"], Meta(description="Empty: open.")]
    reply: str
    replied_by: str
    replied_utc: MaybeUtc


class KeptRun(Struct, kw_only=True, frozen=True):
    """A run for which the site's rules wait."""

    printed_id: str
    asked_by: Annotated[str, Meta(description="The owner, a coordinator of the account, or an operator.")]
    until: Utc
    reason: str


class Neighbour(Struct, kw_only=True, frozen=True):
    """A run that was on a node of another run at the same time."""

    printed_id: Annotated[str, Meta(description="As Slurm prints it.")] = field(name="jobid")
    name: str
    user: str
    state: str
    start: Utc
    end: MaybeUtc
    gpus: int
    nodes: Annotated[list[str], Meta(description="The nodes that both had, the first 8.")]


class Neighbours(Struct, kw_only=True, frozen=True):
    """The runs that were on the nodes of a run at the same time."""

    printed_id: Annotated[str, Meta(description="The run on the same nodes, as Slurm prints it.")] = field(name="jobid")
    runs: int
    others: Annotated[int, Meta(description="Number of `runs` that the reader may not see.")]
    complete: Annotated[bool, Meta(description="Whether all runs of that time were compared.")]
    listed: Annotated[list[Neighbour], Meta(description="The largest number of GPUs first, 50 at most.")]


class JobDocument(Document, kw_only=True, frozen=True):
    """Every run of one job, array or het job, with its devices and findings."""

    document: Literal["job"] = "job"
    schema: int = SCHEMA
    recorded: Recorded
    generated: Utc
    printed_id: str = field(name="job_id")
    runs: list[RunRow]
    findings: list[FindingRow]
    notes: list[str]
    thresholds: Thresholds
    advice: Annotated[list[Advice], Meta(description="Advice at submission, the oldest first.")] = []  # noqa: RUF012 copied
    said_again: Annotated[
        list[SaidAgain], Meta(description="What was predicted while it ran, the oldest first; [hub] rescore.")
    ] = []  # noqa: RUF012 copied
    appeals: Annotated[list[Appeal], Meta(description="Appeals of the owner, where requested.")] = []  # noqa: RUF012 copied
    kept: Annotated[list[KeptRun], Meta(description="Runs for which the site's rules wait now, where requested.")] = []  # noqa: RUF012 copied
    hours: Annotated[list[DeviceHours], Meta(description="GPUs over time, where requested; the first 64.")] = []  # noqa: RUF012 copied
    neighbours: Annotated[
        Neighbours | None, Meta(description="Of the newest run, where requested; null: not known.")
    ] = None

    def table(self, _: str = "") -> Table:
        """Return the GPUs of the runs."""
        return device_table(self)

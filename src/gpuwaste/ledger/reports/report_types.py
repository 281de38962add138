"""The types of the reports: of a scope's runs in a window, and of who wastes GPUs now; job_types has those of one job.

Times are UTC seconds, durations seconds, ratios 0 to 1, utilization percent; null is "not known", never 0. `schema`
counts changes that a reader must know of. A field that two types declare has another place in the JSON of each: a
base's fields are the first.
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct, defstruct, field

from gpuwaste.core.fields import (
    DatedDocument,
    Document,
    GpuSeconds,
    MaybeRatio,
    MaybeUtc,
    Ratio,
    Recorded,
    Table,
    Utc,
)
from gpuwaste.core.hub_config import LedgerThresholds
from gpuwaste.ledger.energy.energy_types import EnergyCost
from gpuwaste.ledger.reports.report_tables import job_table, report_table

SCHEMA: Final = 1
Scope = Literal["user", "account", "cluster"]
Percent = Annotated[float | None, Meta(description="Percent of the known GPU-time; null: nothing known.")]
_Limit = Annotated[float, Meta(description="Percent.")]
_Duration = Annotated[float, Meta(description="Seconds.")]
_EnergyJ = Annotated[float | None, Meta(description="Joules; null: not measured.")]
_EnergyMeasured = Annotated[float | None, Meta(description="GPU-seconds over which energy_j was measured; null: none.")]
_WastedEnergy = Annotated[float | None, Meta(description="Part of energy_j in time known to be wasted, joules.")]
_WastedEnergyShare = Annotated[
    float | None, Meta(description="Wasted share of the energy for which it is known, 0 to 1; null: known for none.")
]
_CpuEnergy = Annotated[
    float | None,
    Meta(description="Energy of CPU packages by the jobs' CPU time, where it was measured, joules; null: none."),
]
_CpuEnergyMeasured = Annotated[
    float | None, Meta(description="GPU-seconds over which cpu_energy_j was measured; null: none.")
]
_Reasons = Annotated[Mapping[str, float], Meta(description="GPU-seconds by reason.")]


class GpuTime(Struct, kw_only=True, frozen=True):
    """Sums over devices: idle, low, moderate, high, suspended, pending and unknown add up to the allocated time."""

    devices: int
    gpu_s: Annotated[float, Meta(description="Allocated GPU-seconds.")]
    idle_s: Annotated[float, Meta(description="GPU-seconds at 0 % utilization.")]
    low_s: GpuSeconds
    moderate_s: GpuSeconds
    high_s: GpuSeconds
    suspended_s: GpuSeconds
    pending_s: Annotated[float, Meta(description="GPU-seconds that agents may still report.")]
    unknown_s: Annotated[float, Meta(description="Unknown GPU-seconds; never counted as waste.")]
    unknown_by_reason_s: _Reasons
    untouched_s: Annotated[float, Meta(description="GPU-seconds of devices on which no process was seen.")]
    idle_run_s: Annotated[float, Meta(description="Idle GPU-seconds in stretches of a minute and more.")]
    wasted_s: Annotated[float, Meta(description="GPU-seconds untouched or idle for a minute and more.")]
    exempt_s: Annotated[float, Meta(description="The part of wasted_s that has a good reason, GPU-seconds.")]
    exempt_by_reason_s: _Reasons
    coverage: Annotated[float | None, Meta(description="Known share of what is not pending, 0 to 1.")]
    mean_util_pct: Percent
    energy_j: _EnergyJ
    energy_measured_s: _EnergyMeasured = None
    wasted_energy_j: _WastedEnergy = None
    wasted_energy_share: _WastedEnergyShare = None
    cpu_energy_j: _CpuEnergy = None
    cpu_energy_measured_s: _CpuEnergyMeasured = None


def unexplained_s(totals: GpuTime) -> float:
    """Return the wasted GPU-seconds that are not exempt, for the headlines about a user's jobs."""
    return max(0.0, totals.wasted_s - totals.exempt_s)


class UnderUsed(Struct, kw_only=True, frozen=True):
    """Devices and jobs below the limit of under-use."""

    jobs: int
    devices: int
    gpu_s: GpuSeconds
    judged_jobs: Annotated[int, Meta(description="Jobs to which the rule applies.")]
    judged_devices: Annotated[int, Meta(description="Devices to which the rule applies.")]


class LevelSum(Struct, kw_only=True, frozen=True):
    """The devices whose mean is at one level."""

    devices: int
    gpu_s: GpuSeconds


class UserRow(GpuTime, frozen=True):
    """The sums of one user."""

    user: str
    accounts: list[str]
    jobs: int
    running: Annotated[int, Meta(description="Running jobs.")]
    under_used: UnderUsed
    energy: Annotated[EnergyCost | None, Meta(description="Of their own GPUs; null: none was measured.")] = None


class ClusterRow(GpuTime, frozen=True):
    """The sums of one cluster."""

    cluster: str
    jobs: int
    running: Annotated[int, Meta(description="Running jobs.")]
    energy: Annotated[EnergyCost | None, Meta(description="Of its own GPUs; null: none was measured.")] = None


class AccountRow(GpuTime, frozen=True):
    """The sums of one account, of all clusters that the report is of."""

    account: str
    users: Annotated[int, Meta(description="Users with jobs.")]
    jobs: int
    running: Annotated[int, Meta(description="Running jobs.")]
    energy: Annotated[EnergyCost | None, Meta(description="Of its own GPUs; null: none was measured.")] = None


class JobRow(GpuTime, frozen=True):
    """One run, or the tasks of an array."""

    cluster: str
    printed_id: Annotated[str, Meta(description="As Slurm prints it; of an array its tasks: 30_[0-2].")] = field(
        name="jobid"
    )
    name: str
    user: str
    account: str
    partition: str
    state: Annotated[str, Meta(description="MIXED where tasks have several.")]
    states: Annotated[Mapping[str, int], Meta(description="Tasks by state.")]
    tasks: int
    requeued: Annotated[bool, Meta(description="Whether the job ran again afterwards.")]
    running: bool
    start: Utc
    end: MaybeUtc
    gpus: int
    gpu_type: str
    under_used_devices: int
    shared_gpu_s: Annotated[float, Meta(description="GPU-seconds of shares of GPUs.")]
    cpu_efficiency: MaybeRatio
    memory_efficiency: MaybeRatio
    devices_by_level: Annotated[Mapping[str, int], Meta(description="GPUs by the level of their mean.")] = {}
    finding: Annotated[str, Meta(description="The kind of the finding with the largest waste; empty: none.")] = ""
    why: Annotated[str, Meta(description="The title of that finding.")] = ""


class DayRow(Struct, kw_only=True, frozen=True):
    """The GPU-time of the runs that ended on one UTC day, within the window."""

    day: Annotated[int, Meta(description="When the day begins, UTC seconds.")]
    jobs: int
    gpu_s: GpuSeconds
    idle_s: GpuSeconds
    low_s: GpuSeconds
    moderate_s: GpuSeconds
    high_s: GpuSeconds
    wasted_s: GpuSeconds
    pending_s: GpuSeconds = 0.0
    energy_j: _EnergyJ = None
    energy_measured_s: _EnergyMeasured = None
    wasted_energy_j: _WastedEnergy = None
    wasted_energy_share: _WastedEnergyShare = None
    cpu_energy_j: _CpuEnergy = None
    cpu_energy_measured_s: _CpuEnergyMeasured = None
    energy: Annotated[EnergyCost | None, Meta(description="Of these runs; null: none was measured.")] = None


class NameRow(Struct, kw_only=True, frozen=True):
    """The GPU-time of the runs of one job name, within the window."""

    name: str
    jobs: int
    gpu_s: GpuSeconds
    wasted_s: GpuSeconds


class FindingRun(Struct, kw_only=True, frozen=True):
    """A run that a finding concerns."""

    cluster: str
    job_id: Annotated[int, Meta(description="The raw job id.")] = field(name="jobid")
    start: Utc
    printed_id: str


class FixRow(Struct, kw_only=True, frozen=True):
    """One change of a job."""

    text: Annotated[str, Meta(description="What to do, as an instruction.")]
    lines: Annotated[
        list[str], Meta(description="Lines to copy unchanged into the script or a terminal; all are needed.")
    ]


class FindingRow(Struct, kw_only=True, frozen=True):
    """A named cause of waste."""

    kind: str
    title: str
    runs: list[FindingRun]
    evidence: Annotated[Mapping[str, Any], Meta(description="The figures behind the title, by name with their unit.")]
    fix: Annotated[list[str], Meta(description="The lines of the first of `fixes`.")]
    fixes: Annotated[list[FixRow], Meta(description="Alternative changes: choose one of them.")] = []
    wasted_gpu_s: GpuSeconds
    provisional: Annotated[bool, Meta(description="Whether the job still runs.")]


class FindingCount(Struct, kw_only=True, frozen=True):
    """How many findings of one kind there are."""

    findings: int
    jobs: int
    wasted_gpu_s: GpuSeconds


if TYPE_CHECKING:

    class Thresholds(LedgerThresholds):
        """The thresholds by which the runs were judged; [hub] of gpuwaste.toml explains each."""

        pending_s: float

else:  # those of [hub], without defaults: all are in the JSON
    _names = [*(part.name for part in dataclasses.fields(LedgerThresholds)), "pending_s"]
    _units = {"pct": _Limit, "s": _Duration}
    Thresholds = defstruct(
        "Thresholds", [(name, _units.get(name.rpartition("_")[2], Ratio)) for name in _names], kw_only=True, frozen=True
    )
    Thresholds.__doc__ = "The thresholds by which the runs were judged; [hub] of gpuwaste.toml explains each."


class ReportDocument(DatedDocument, kw_only=True, frozen=True):
    """What a scope's runs in a window did with their GPUs.

    GPU-time of the totals and of users is cut at the window's edges; jobs, devices and findings are of whole runs.
    """

    document: Literal["report"] = "report"
    scope: Scope
    name: Annotated[
        str, Meta(description="The user, account or cluster, or clusters separated by commas; empty: every cluster.")
    ]
    start: Utc
    end: Utc
    totals: GpuTime
    shared: Annotated[GpuTime, Meta(description="Shares of GPUs; never counted as waste.")]
    levels: Annotated[Mapping[str, LevelSum], Meta(description="Devices by the level of their mean.")]
    under_used: UnderUsed
    job_count: int
    clusters: Annotated[
        list[ClusterRow], Meta(description="Of each cluster, by name, where clusters were requested; they add up.")
    ] = []  # noqa: RUF012 copied
    accounts: Annotated[
        list[AccountRow], Meta(description="The largest waste first; not in a report of one account.")
    ] = []  # noqa: RUF012 copied
    users: Annotated[list[UserRow], Meta(description="The largest waste first.")]
    jobs: Annotated[list[JobRow], Meta(description="The largest waste first.")]
    jobs_left_out: int
    jobs_matching: Annotated[int | None, Meta(description="Rows of the job table, including those left out.")] = None
    days: Annotated[list[DayRow], Meta(description="By the day on which runs ended; the last has the open ones.")] = []  # noqa: RUF012 copied
    energy: Annotated[EnergyCost | None, Meta(description="Of the totals; null: none was measured.")] = None
    worst_name: Annotated[NameRow | None, Meta(description="The job name of the largest waste.")] = None
    findings: Annotated[list[FindingRow], Meta(description="The largest waste first.")]
    finding_counts: Annotated[Mapping[str, FindingCount], Meta(description="Of all findings, by kind.")]
    notes: list[str]
    thresholds: Thresholds

    def table(self, part: str = "") -> Table:
        """Return the jobs, or another table: users, accounts, clusters, days."""
        return report_table(self, part)


class TopDocument(Document, kw_only=True, frozen=True):
    """Who wastes GPUs now: running jobs since a whole UTC hour."""

    document: Literal["top"] = "top"
    schema: int = SCHEMA
    recorded: Recorded
    generated: Utc
    since: Utc
    totals: GpuTime
    users: list[UserRow]
    jobs: list[JobRow]
    notes: list[str]

    def table(self, _: str = "") -> Table:
        """Return the jobs."""
        return job_table(self)

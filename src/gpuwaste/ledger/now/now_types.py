"""The types of the current state of the cluster: GPUs held and idle, nodes that report nothing, the queue."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field, to_builtins

from gpuwaste.core.fields import Document, MaybeUtc, Recorded, Seconds, Table, Utc
from gpuwaste.ledger.reports.job_types import Advice


class NowTotals(Struct, kw_only=True, frozen=True):
    """Counts of the whole cluster, the same for every caller; held is the sum of the six levels."""

    gpus: Annotated[int | None, Meta(description="GPUs that Slurm schedules; null: not known.")]
    held: Annotated[int, Meta(description="GPUs that running jobs hold, without shares.")]
    high: int
    moderate: int
    low: int
    idle: Annotated[
        int, Meta(description="GPUs at 0 % at their last report: for a minute and more, or in all of its hour.")
    ]
    suspended: int
    unknown: Annotated[int, Meta(description="GPUs without a report that is new enough; never waste.")]
    shares: Annotated[int, Meta(description="Shares of GPUs that running jobs hold.")]
    jobs: Annotated[int, Meta(description="Running jobs that hold GPUs or shares.")]
    idle_jobs: Annotated[int, Meta(description="Running jobs that hold idle GPUs.")]
    idle_wasted_s: Annotated[float, Meta(description="GPU-seconds that the idle GPUs wasted in their jobs so far.")]
    silent_nodes: Annotated[int, Meta(description="Nodes with held GPUs that report nothing.")]


class NowAges(Struct, kw_only=True, frozen=True):
    """How old the figures are."""

    accounting_read: Annotated[int | None, Meta(description="Accounting was read up to this time, UTC seconds.")]
    nodes_read: Annotated[int | None, Meta(description="When the nodes were read from Slurm, UTC seconds.")]
    report_median_s: Annotated[int | None, Meta(description="Median age of the GPUs' last reports, seconds.")]
    report_max_s: Annotated[int | None, Meta(description="Age of the oldest report that still counts, seconds.")]
    report_limit_s: Annotated[int, Meta(description="A report older than this does not count, seconds.")]


class IdleJob(Struct, kw_only=True, frozen=True):
    """A running job that holds idle GPUs."""

    cluster: str
    printed_id: Annotated[str, Meta(description="As Slurm prints it.")] = field(name="jobid")
    name: str
    user: str
    account: str
    partition: str
    start: Utc
    gpus: Annotated[int, Meta(description="GPUs that the job holds.")]
    idle: Annotated[int, Meta(description="GPUs of these that are idle now.")]
    never_active: Annotated[int, Meta(description="Idle GPUs that were never above 0 %.")]
    since: Annotated[int, Meta(description="Start of the longest idle time among them, UTC seconds.")]
    reported: Annotated[int, Meta(description="The oldest of their last reports, UTC seconds.")]
    nodes: Annotated[list[str], Meta(description="Where the idle GPUs are: the first 16 nodes.")]
    nodes_left_out: int
    wasted_s: Annotated[float, Meta(description="GPU-seconds that the idle GPUs wasted since the job began.")]
    exempt_s: Annotated[float, Meta(description="The part of wasted_s that has a good reason, GPU-seconds.")]
    advice: Annotated[list[Advice], Meta(description="Advice at submission, the oldest first.")]


class NodeWithState(Struct, kw_only=True, frozen=True):
    """What a row about a node begins with."""

    node: str
    state: Annotated[str, Meta(description="As Slurm prints it; empty: not known.")]


class SilentNode(NodeWithState, kw_only=True, frozen=True):
    """A node on which jobs hold GPUs, and whose agent reports nothing."""

    since: Annotated[int, Meta(description="The last report, or the start of its first job, UTC seconds.")]
    gpus: Annotated[int, Meta(description="GPUs that jobs hold there.")]
    jobs: Annotated[int, Meta(description="Jobs that hold GPUs there.")]


class QueueRow(Struct, kw_only=True, frozen=True):
    """The pending jobs of one partition; accounting does not list those that are held or wait for another job."""

    partition: str
    jobs: Annotated[int, Meta(description="Pending jobs; each task of an array is one.")]
    gpus: Annotated[int, Meta(description="GPUs that they request.")]
    oldest: Annotated[int, Meta(description="Submission of the oldest, UTC seconds.")]
    longest_wait_s: Seconds


class NodeRow(NodeWithState, kw_only=True, frozen=True):
    """The GPUs of one node that jobs hold; the lists have one item for each, ordered by job."""

    gpus: Annotated[int | None, Meta(description="GPUs that Slurm schedules there; null: not known.")]
    reported: MaybeUtc
    levels: Annotated[
        str,
        Meta(description="One letter for each held GPU: h high, m moderate, l low, i idle, s suspended, u unknown."),
    ]
    mean_pct: Annotated[
        list[int | None],
        Meta(
            description="Mean utilization of the UTC hour of `reported` so far, percent, 0 for none; null: not known."
        ),
    ]
    jobs: Annotated[list[str], Meta(description="The job that holds it.")]
    wasted_s: Annotated[float, Meta(description="GPU-seconds that its idle GPUs wasted since their jobs began.")] = 0.0


class NowDocument(Document, kw_only=True, frozen=True):
    """What the cluster does now, as far as agents and accounting have reported.

    Operators see all. Others see the counts, and jobs and nodes as far as they may see the jobs.
    """

    document: Literal["now"] = "now"
    schema: int = 1
    recorded: Recorded
    generated: Annotated[int, Meta(description="When the figures were computed, UTC seconds.")]
    ages: NowAges
    totals: NowTotals
    idle: Annotated[list[IdleJob], Meta(description="The largest waste first.")]
    idle_left_out: Annotated[int, Meta(description="Jobs with less waste that the limit leaves out.")]
    silent: Annotated[list[SilentNode], Meta(description="The longest silence first.")]
    queue: Annotated[list[QueueRow], Meta(description="The most GPUs first.")]
    nodes: list[NodeRow]
    notes: list[str]

    def table(self, _: str = "") -> Table:
        """Return the jobs with idle GPUs."""
        columns = (name for name in IdleJob.__struct_encode_fields__ if name != "advice")
        rows = map(to_builtins, self.idle)
        return ("generated", *columns), (
            {**row, "nodes": ",".join(row["nodes"]), "generated": self.generated} for row in rows
        )

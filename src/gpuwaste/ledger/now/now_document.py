"""Builds the document of the cluster's current state, from the figures of one instant, within a reader's scope."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.held_gpus import HeldGpu, HeldRun, SilentAgent, held_runs, silent_nodes
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.now.now_types import IdleJob, NodeRow, NowAges, NowDocument, NowTotals, QueueRow, SilentNode
from gpuwaste.ledger.reports.job_types import Advice
from gpuwaste.ledger.reports.report_builder import is_recorded
from gpuwaste.ledger.tally import seconds
from gpuwaste.slurm.accounting.tres_amounts import gpu_count, parse_tres
from gpuwaste.slurm.formats.printed_run import task_count
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.store.database import Database

MAX_NODES: Final = 16  # listed for an idle job


@dataclass(frozen=True, slots=True)
class SlurmNodes:
    """Slurm's nodes, and when they were read, UTC seconds; None: not yet."""

    read: int | None = None
    nodes: Sequence[Node] = ()


@dataclass(frozen=True, slots=True)
class Now:
    """All figures of one instant, from which the documents of all readers are made."""

    generated: int
    recorded: bool
    runs: Sequence[HeldRun]
    overdue: int
    queue: Sequence[QueueRow]
    silent: Sequence[SilentAgent]
    slurm: SlurmNodes
    accounting_read: int | None
    report_limit_s: int
    totals: NowTotals
    by_node: Mapping[str, Sequence[tuple[HeldRun, HeldGpu]]] = field(repr=False)


Visible = Callable[[HeldRun], bool]
AdviceOf = Callable[[Sequence[HeldRun]], Mapping[int, list[Advice]]]
"""The advice for runs, by their positions."""


def take_now(  # noqa: PLR0917 the sources in the order of the document
    db: Database,
    cluster: str | None,
    settings: LedgerSettings,
    now: int,
    slurm: SlurmNodes,
    accounting_read: int | None,
) -> Now:
    """Return the figures of a cluster (None: of all in the store). Raises StoreError."""
    found = held_runs(db, cluster, settings, now)
    runs = [run for run in found if not run.overdue(now)]
    silent = silent_nodes(runs, settings, now)
    by_node: dict[str, list[tuple[HeldRun, HeldGpu]]] = {}
    for run in runs:
        for gpu in run.held:
            by_node.setdefault(gpu.node, []).append((run, gpu))
    return Now(
        generated=now,
        recorded=is_recorded(db),
        runs=runs,
        overdue=len(found) - len(runs),
        queue=_queue(db, cluster, now),
        silent=silent,
        slurm=slurm,
        accounting_read=accounting_read,
        report_limit_s=int(settings.pending_s),
        totals=_totals(runs, silent, slurm),
        by_node=by_node,
    )


def now_document(known: Now, limit: int, visible: Visible | None, advice_of: AdviceOf) -> NowDocument:
    """Return the document for a reader who may see the runs for which `visible` is true; None: all runs and nodes."""
    states = {node.name: node for node in known.slurm.nodes}
    seen = [run for run in known.runs if visible is None or visible(run)]
    idle = sorted((run for run in seen if _idle(run)), key=lambda run: (-_wasted_ms(run), run.place))
    said = advice_of(idle[:limit])
    return NowDocument(
        recorded=known.recorded,
        generated=known.generated,
        ages=_ages(known),
        totals=known.totals,
        idle=[_idle_job(run, said.get(run.place, [])) for run in idle[:limit]],
        idle_left_out=len(idle[limit:]),
        silent=_silent(known, seen, states, everything=visible is None),
        queue=list(known.queue),
        nodes=_node_rows(known, seen, states, everything=visible is None),
        notes=_notes(known),
    )


def _totals(runs: Sequence[HeldRun], silent: Sequence[SilentAgent], slurm: SlurmNodes) -> NowTotals:
    levels = Counter(gpu.level for run in runs for gpu in run.held)
    idle = [gpu for run in runs for gpu in _idle(run)]
    return NowTotals(
        gpus=None if slurm.read is None else sum(node.gpu_count for node in slurm.nodes),
        held=sum(levels.values()),
        high=levels["high"],
        moderate=levels["moderate"],
        low=levels["low"],
        idle=levels["idle"],
        suspended=levels["suspended"],
        unknown=levels["unknown"],
        shares=sum(run.shares for run in runs),
        jobs=len(runs),
        idle_jobs=sum(bool(_idle(run)) for run in runs),
        idle_wasted_s=seconds(sum(gpu.wasted_ms for gpu in idle)),
        silent_nodes=len(silent),
    )


def _ages(known: Now) -> NowAges:
    ages = [known.generated - seen // 1000 for run in known.runs for gpu in run.held if (seen := gpu.seen_ms)]
    fresh = [max(0, age) for age in ages if age <= known.report_limit_s]
    return NowAges(
        accounting_read=known.accounting_read,
        nodes_read=known.slurm.read,
        report_median_s=median_low(fresh) if fresh else None,
        report_max_s=max(fresh, default=None),
        report_limit_s=known.report_limit_s,
    )


def _idle(run: HeldRun) -> list[HeldGpu]:
    return [gpu for gpu in run.held if gpu.level == "idle"]


def _wasted_ms(run: HeldRun) -> int:
    return sum(gpu.wasted_ms for gpu in _idle(run))


def _idle_job(run: HeldRun, advice: list[Advice]) -> IdleJob:
    job, idle = run.job, _idle(run)
    nodes = sorted({gpu.node for gpu in idle})
    return IdleJob(
        cluster=job.cluster,
        printed_id=job.printed_id,
        name=job.name,
        user=job.user,
        account=job.account,
        partition=job.partition,
        start=job.run_key.start,
        gpus=len(run.held),
        idle=len(idle),
        never_active=sum(gpu.last_active_ms is None for gpu in idle),
        since=min(gpu.idle_from_ms or 0 for gpu in idle) // 1000,
        reported=min(gpu.seen_ms or 0 for gpu in idle) // 1000,
        nodes=nodes[:MAX_NODES],
        nodes_left_out=len(nodes[MAX_NODES:]),
        wasted_s=seconds(sum(gpu.wasted_ms for gpu in idle)),
        exempt_s=seconds(sum(gpu.exempt_ms for gpu in idle)),
        advice=advice,
    )


def _silent(known: Now, seen: Iterable[HeldRun], states: Mapping[str, Node], *, everything: bool) -> list[SilentNode]:
    """Return the silent nodes; a reader with a limited scope gets those of their own jobs, counting only their GPUs."""
    mine = {run.place: run for run in seen}
    rows = []
    for silence in known.silent:
        pairs = [(run, gpu) for run, gpu in known.by_node[silence.node] if run.place in mine]
        if pairs or everything:
            state = states[silence.node].state if silence.node in states else ""
            jobs = len({run.place for run, _ in pairs})
            rows.append(SilentNode(node=silence.node, state=state, since=silence.since, gpus=len(pairs), jobs=jobs))
    return rows


def _node_rows(known: Now, seen: Sequence[HeldRun], states: Mapping[str, Node], *, everything: bool) -> list[NodeRow]:
    """Return the nodes with held GPUs or with any; a reader with a limited scope gets those of their own jobs."""
    names = {gpu.node for run in seen for gpu in run.held if gpu.node}
    if everything:
        names |= {node.name for node in known.slurm.nodes if node.gpus}
    mine = {run.place for run in seen}
    return [
        _node_row(name, states.get(name), [pair for pair in known.by_node.get(name, ()) if pair[0].place in mine])
        for name in sorted(names)
    ]


def _node_row(name: str, node: Node | None, pairs: Sequence[tuple[HeldRun, HeldGpu]]) -> NodeRow:
    reports = [gpu.seen_ms for _, gpu in pairs if gpu.seen_ms is not None]
    return NodeRow(
        node=name,
        state="" if node is None else node.state,
        gpus=None if node is None else node.gpu_count,
        reported=max(reports) // 1000 if reports else None,
        levels="".join(gpu.level[0] for _, gpu in pairs),
        mean_pct=[None if gpu.level == "unknown" else _percent(gpu.mean_pct) for _, gpu in pairs],
        jobs=[run.job.printed_id for run, _ in pairs],
        wasted_s=seconds(sum(gpu.wasted_ms for _, gpu in pairs if gpu.level == "idle")),
    )


def _percent(mean_pct: float | None) -> int | None:
    """Return whole percent; values just above 0 are not rounded to 0, which means idle."""
    return None if mean_pct is None else round(mean_pct) or int(mean_pct > 0)


def _queue(db: Database, cluster: str | None, now: int) -> list[QueueRow]:
    """Return the pending jobs by partition."""
    jobs: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    oldest: dict[str, int] = {}
    for row in db.rows("jobs_waiting", {"cluster": cluster}):
        partition, count = row["partition"], row["jobs"] * task_count(row["tasks"])
        jobs[partition] += count
        gpus[partition] += count * _gpus(row["req_tres"])
        oldest[partition] = min(oldest.get(partition, now), row["oldest"])
    rows = [
        QueueRow(partition=name, jobs=jobs[name], gpus=gpus[name], oldest=first, longest_wait_s=max(0, now - first))
        for name, first in oldest.items()
    ]
    return sorted(rows, key=lambda row: (-row.gpus, -row.jobs, row.partition))


def _gpus(req_tres: str) -> int:
    try:
        return gpu_count(parse_tres(req_tres)).total
    except ParseError:
        return 0


def _notes(known: Now) -> list[str]:
    notes = []
    if known.overdue:
        runs = "1 run is" if known.overdue == 1 else f"{known.overdue} runs are"
        notes.append(
            f"{runs} left out: past the time limit by more than a day, but without an end in accounting"
            " (sacctmgr show runawayjobs)"
        )
    if known.accounting_read is None:
        notes.append("accounting has not been read yet: running and pending jobs may be missing")
    return notes

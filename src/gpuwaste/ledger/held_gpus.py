"""The GPUs that running jobs hold now: the ledger of each, and the level of its newest hour."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Final, Literal

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.run_judging import HANG_LIMITS, judge_held, judge_picked_gpus
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.store.database import Database

NowLevel = Literal["high", "moderate", "low", "idle", "suspended", "unknown"]
IDLE_MS: Final = 60_000  # as long as a run of zeros that counts as waste; rules ask for no less
HANG_HOURS: Final = 6  # a hang is searched no further back
_UNLIMITED_S: Final = 365 * DAY_S  # with a day more as query history_open has it


@dataclass(slots=True)
class HeldGpu:
    """One GPU of a run; milliseconds UTC, None where no agent has reported it."""

    node: str  # empty where neither an agent nor accounting names one
    gpu_uuid: str
    first_ms: int | None
    seen_ms: int | None
    last_active_ms: int | None
    mean_pct: float | None  # of its newest hour so far
    wasted_ms: int  # since the run began
    exempt_ms: int
    coverage: float  # of its time so far, without what may still be on its way
    hang_ms: int | None  # at full use without work up to now, from complete hours of it; None: not known
    cpu_cores: float | None  # of the run on the node, in its last two hours
    level: NowLevel = "unknown"

    @property
    def idle_from_ms(self) -> int | None:
        """When it was last active, or first seen if it never was."""
        return self.first_ms if self.last_active_ms is None else self.last_active_ms

    @property
    def idle_ms(self) -> int:
        """For how long it had been at 0 % at its last report."""
        return max(0, (self.seen_ms or 0) - (self.idle_from_ms or 0))


@dataclass(slots=True)
class HeldRun:
    """A run that has not ended, with its own GPUs; shares of GPUs are only counted."""

    place: int
    job: JobRecord
    held: list[HeldGpu] = field(default_factory=list)
    shares: int = 0

    def overdue(self, now: int) -> bool:
        """Return whether it is past its limit by more than a day: accounting has lost its end."""
        return self.job.run_key.start + (self.job.time_limit_s or _UNLIMITED_S) + DAY_S < now


_JOB: Final = tuple(f.name for f in fields(JobRecord))
_GPU: Final = tuple(f.name for f in fields(HeldGpu) if f.name != "level")


def held_runs(db: Database, cluster: str | None, settings: LedgerSettings, now: int) -> list[HeldRun]:
    """Return the runs of a cluster (None: of all) that hold GPUs, in order of start, including overdue ones."""
    return _held(db, settings, now) if judge_held(db, cluster, settings, now) else []


def picked_held_runs(db: Database, settings: LedgerSettings, now: int) -> list[HeldRun]:
    """Return the open runs that were picked last on this connection, with their GPUs, as `held_runs` does."""
    return _held(db, settings, now) if judge_picked_gpus(db, settings, now) else []


def _held(db: Database, settings: LedgerSettings, now: int) -> list[HeldRun]:
    """Return the runs whose GPUs were judged last on this connection."""
    from_hour = int(now - settings.pending_s) // HOUR_S * HOUR_S
    hang_from = now // HOUR_S * HOUR_S - HANG_HOURS * HOUR_S
    found = db.answer("held_gpus", {"from_hour": from_hour, "hang_from_hour": hang_from, **HANG_LIMITS})
    picked = db.answer("held_runs").pick("place", *_JOB)
    runs = {place: HeldRun(place, JobRecord(*job)) for place, *job in picked}
    for (place, own), values in zip(found.pick("place", "own"), found.pick(*_GPU), strict=True):
        run = runs[place]
        if own:
            run.held.append(HeldGpu(*values))
        else:
            run.shares += 1
    for run in runs.values():
        _place(run)
        for gpu in run.held:
            gpu.level = _level(gpu, run, settings, now)
    return list(runs.values())


def _level(gpu: HeldGpu, run: HeldRun, settings: LedgerSettings, now: int) -> NowLevel:
    """Return the level of a GPU at the agent's last report; unknown where that report is too old.

    A GPU with activity in the hour is idle after a minute at 0 %; one without any is idle from its first second.
    """
    if run.job.state == "SUSPENDED":
        return "suspended"
    if gpu.seen_ms is None or gpu.idle_from_ms is None or gpu.mean_pct is None:
        return "unknown"
    if gpu.seen_ms < 1000 * (now - settings.pending_s):
        return "unknown"
    if gpu.mean_pct == 0 or gpu.idle_ms >= IDLE_MS:
        return "idle"
    if gpu.mean_pct < settings.low_below_pct:
        return "low"
    return "high" if gpu.mean_pct > settings.high_above_pct else "moderate"


def _place(run: HeldRun) -> None:
    """Set the node of each GPU that no agent reported: a node of accounting with fewer GPUs than its share."""
    nameless = [gpu for gpu in run.held if not gpu.node]
    nodes = _nodes(run.job.nodes) if nameless else []
    if not nodes:
        return
    each = -(-len(run.held) // len(nodes))
    seen = [gpu.node for gpu in run.held if gpu.node]
    free = (node for node in nodes for _ in range(max(0, each - seen.count(node))))
    for gpu, node in zip(nameless, free, strict=False):
        gpu.node = node


def _nodes(hostlist: str) -> list[str]:
    try:
        return expand(hostlist)
    except ParseError:
        return []


@dataclass(frozen=True, slots=True)
class SilentAgent:
    """A node on which runs hold GPUs and whose agent reports nothing; `since` is UTC seconds."""

    node: str
    since: int
    gpus: int
    runs: int


def silent_nodes(runs: Iterable[HeldRun], settings: LedgerSettings, now: int) -> list[SilentAgent]:
    """Return the nodes without a report for longer than reports may take, the longest silence first."""
    holders: dict[str, list[tuple[HeldRun, HeldGpu]]] = {}
    for run in runs:
        for gpu in run.held:
            if gpu.node:
                holders.setdefault(gpu.node, []).append((run, gpu))
    before = int(now - settings.pending_s)
    found = []
    for node, pairs in holders.items():
        since = max(max(gpu.seen_ms or 0 for _, gpu in pairs) // 1000, min(run.job.run_key.start for run, _ in pairs))
        if since < before:
            found.append(SilentAgent(node, since, len(pairs), len({run.place for run, _ in pairs})))
    return sorted(found, key=lambda silence: (silence.since, silence.node))

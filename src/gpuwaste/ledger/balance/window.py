"""The balance of a window: stored hours from the store, the rest computed."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.machine.machine_reads import machine_known
from gpuwaste.ledger.balance.balance import balance
from gpuwaste.ledger.balance.balance_store import NONE_STORED, stored_hours
from gpuwaste.ledger.balance.reads import inputs_of, spans_of
from gpuwaste.ledger.balance.types import BalanceClass, BalanceInputs, BalanceSums, Devices, GpuKind, HourSum, Run
from gpuwaste.store.database import Database
from gpuwaste.store.hub.json_rows import to_json

LOOKAHEAD_S: Final = 6 * HOUR_S
"""What started in this time after a part tells for whom GPUs were kept at its end."""
MOST_RUNS: Final = 20_000
"""Runs whose balance a reader of the hub waits for; a thousand take about a third of a second of CPU."""
MOST_BLOCKERS: Final = 200
"""Runs of the stored hours that are told to have been in the way, those with the most GPU-seconds."""
_DAY_AS_RUNS: Final = 50
"""A day costs at least as much as so many runs."""


class StepSum(NamedTuple):
    """A place of a window's sums: the number of the step, the kind of GPUs, the class."""

    step: int
    kind: GpuKind
    of: BalanceClass


class Blocker(NamedTuple):
    """A run that was in the way on a node of a cluster."""

    cluster: str
    of: BalanceClass
    run: Run
    node: str


@dataclass(slots=True)
class WindowBalance:
    """GPU-seconds of a window by step of `step_s` seconds, kind and class; `blocked` by run and node.

    Of the runs in the way in stored hours alone, the MOST_BLOCKERS with the most GPU-seconds are in `blocked`.
    `over` are GPU-seconds that runs held beyond what their nodes have; `estimated` those whose node is estimated.
    With `runs_left` hours that are not stored are counted while they have no more runs, the last ones first: the time
    before `counted_from` is not known then.
    """

    start: int
    end: int
    now: int
    step_s: int
    devices: Devices = "GPUs"
    runs_left: int | None = None
    counted_from: int = 0
    seconds: Counter[StepSum] = field(default_factory=Counter)
    blocked: Counter[Blocker] = field(default_factory=Counter)
    estimated: int = 0
    over: int = 0

    def by_class(self) -> Counter[BalanceClass]:
        """Return the GPU-seconds of each class."""
        found: Counter[BalanceClass] = Counter()
        for place, gpu_s in self.seconds.items():
            found[place.of] += gpu_s
        return found


Mapped = Callable[[Callable[[BalanceInputs], BalanceSums], Iterator[BalanceInputs]], Iterator[BalanceSums]]
"""How the parts are computed, each by itself: `map`, or by several processes (core/child_process.py)."""


def parts_of(
    db: Database, cluster: str, edges: tuple[int, int], now: int, devices: Devices = "GPUs", *, mapped: Mapped = map
) -> Iterator[tuple[int, int, BalanceSums]]:
    """Yield the balance of a time in parts, each with its edges; its sums can go beyond the end.

    A part is a day, or successive days in which no run began. Raises StoreError.
    """
    start, end = edges[0], min(edges[1], now)
    parts = _parts(start, end, now, _runs_by_day(db, cluster, start, end))
    yield from _counted(db, cluster, parts, devices, mapped)


def _counted(
    db: Database, cluster: str, parts: Iterable[tuple[int, int, int]], devices: Devices, mapped: Mapped = map
) -> Iterator[tuple[int, int, BalanceSums]]:
    edges = list(parts)
    read = (inputs_of(db, cluster, start, ahead, devices) for start, _, ahead in edges)
    for (start, until, _), sums in zip(edges, mapped(balance, read), strict=True):
        yield start, until, sums


def _parts(start: int, end: int, now: int, runs: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield start and end of each part, and until when is read."""
    while start < end:
        day = start - start % DAY_S
        until = day + DAY_S
        while until < end and day not in runs and until not in runs:
            until += DAY_S
        until = min(until, end)
        if until % HOUR_S and until - until % HOUR_S > start:
            until -= until % HOUR_S
        ahead = until if until % HOUR_S else max(until, min(until + LOOKAHEAD_S, now))
        yield start, until, ahead
        start = until


def _runs_by_day(db: Database, cluster: str, since: int, until: int) -> Mapping[int, int]:
    """Return the number of runs by their first day in [since, until); nothing where it is in one day."""
    if until <= since - since % DAY_S + DAY_S:
        return {}
    rows = db.rows("balance_work", {"cluster": cluster, "since": since, "until": until})
    return {row["day"]: row["runs"] for row in rows}


def add_window(db: Database, cluster: str, found: WindowBalance) -> None:
    """Add a cluster to the balance of a window; what lies after now is left out. Raises StoreError."""
    start, end = _not_known(db, cluster, found), min(found.end, found.now)
    stored = stored_hours(db, cluster) if found.devices == "GPUs" else NONE_STORED
    since = max(stored.since, -(-start // HOUR_S) * HOUR_S)
    until = min(stored.until, end - end % HOUR_S)
    if since >= until:
        _compute(db, cluster, start, end, found)
        return
    _compute(db, cluster, until, end, found)
    _compute(db, cluster, start, since, found)
    _read(db, cluster, since, until, found)


def _compute(db: Database, cluster: str, start: int, end: int, found: WindowBalance) -> None:
    runs = _runs_by_day(db, cluster, start, end)
    if found.runs_left is not None:
        since = _affordable(start, end, runs, found)
        if since > start:
            _add_unknown(db, cluster, start, since, found)
            found.counted_from = max(found.counted_from, since)
        start = since
    for _, until, sums in _counted(db, cluster, _parts(start, end, found.now, runs), found.devices):
        for place, gpu_s in sums.seconds.items():
            if place.hour < until:
                found.seconds[_place(place, found)] += gpu_s
        found.estimated += sum(gpu_s for place, gpu_s in sums.estimated.items() if place.hour < until)
        found.over += sum(gpu_s for place, gpu_s in sums.over.items() if place.hour < until)
        for blocking, gpu_s in sums.blocked.items():
            if blocking.hour < until:
                found.blocked[Blocker(cluster, blocking.of, blocking.run, blocking.node)] += gpu_s


def _affordable(start: int, end: int, runs_by_day: Mapping[int, int], found: WindowBalance) -> int:
    """Return when the days begin that have no more runs than are left, and take these."""
    since, left = start, found.runs_left or 0
    for day, runs in sorted(runs_by_day.items(), reverse=True):
        cost = max(runs, _DAY_AS_RUNS)
        if cost > left:
            since = min(day + DAY_S, end)
            break
        left -= cost
    found.runs_left = left
    return since


def _not_known(db: Database, cluster: str, found: WindowBalance) -> int:
    """Count the time before anything is known of a cluster, by kind of GPUs; return when the other time begins."""
    known, first = machine_known(db, cluster), db.rows("balance_first", {"cluster": cluster})[0]["first"]
    since = min([found.end, *(at for at in (first, known.nodes or None) if at is not None)])
    if since <= found.start:
        return found.start
    _add_unknown(db, cluster, found.start, since, found)
    return since


def _add_unknown(db: Database, cluster: str, start: int, until: int, found: WindowBalance) -> None:
    kinds: Counter[tuple[int, int, GpuKind]] = Counter()
    for span in spans_of(db, cluster, start, until, found.devices):
        kinds[span.since, span.until, span.kind] += span.gpus
    first = (start - found.start) // found.step_s
    for (since, gone, kind), gpus in kinds.items():
        for step in range(first, (until - 1 - found.start) // found.step_s + 1):
            at = found.start + step * found.step_s
            seconds = max(0, min(at + found.step_s, until, gone) - max(at, start, since))
            found.seconds[StepSum(step, kind, BalanceClass.NOT_KNOWN)] += gpus * seconds


def _place(place: HourSum, found: WindowBalance) -> StepSum:
    return StepSum((max(place.hour, found.start) - found.start) // found.step_s, place.kind, place.of)


def _read(db: Database, cluster: str, since: int, until: int, found: WindowBalance) -> None:
    window = {"cluster": cluster, "since": since, "until": until}
    steps = {"start": found.start, "step": found.step_s}
    for step, partitions, gpu_type, of, gpu_s, estimated, over in db.run(
        "balance_hours_of", {**window, **steps}
    ).fetchall():
        found.seconds[StepSum(step, GpuKind(partitions, gpu_type), BalanceClass(of))] += gpu_s
        found.estimated += estimated
        found.over += over
    computed = {(blocker.of, blocker.run) for blocker in found.blocked if blocker.cluster == cluster}
    also = [{"class": of.value, "job_id": run[0], "run_start": run[1]} for of, run in sorted(computed)]
    blockers = db.run("balance_blockers_of", {**window, "most": MOST_BLOCKERS, "also": to_json(also)})
    for of, job_id, run_start, node, gpu_s in blockers.fetchall():
        found.blocked[Blocker(cluster, BalanceClass(of), (job_id, run_start), node)] += gpu_s

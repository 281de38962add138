"""Judges runs of the hub's store, any number at once: picks them, adds up their hours, judges, names the causes.

The runs judged last on a connection are in its temporary tables: a row for each run with the columns of table judged
(query judged_rows), and the figures of each GPU.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.scope import ClusterAccount, account_rows
from gpuwaste.core.text import storable
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.findings import causes, limits
from gpuwaste.ledger.hour import FULL_PCT
from gpuwaste.ledger.ledger import DeviceLedger, DeviceUse, JobLedger, LedgerSettings, Level
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.store.database import Database, query_text
from gpuwaste.store.hub.json_rows import to_json

# A GPU that computes draws far more than a quarter of its limit and has most SMs busy; a kernel that waits in a loop
# for a peer keeps the duty cycle at 100 % with a few SMs and little more than idle power.
HANG_POWER_RATIO: Final = 0.25
HANG_SM_RATIO: Final = 0.1
HANG_LIMITS: Final = {"hang_power_ratio": HANG_POWER_RATIO, "hang_sm_ratio": HANG_SM_RATIO, "full_pct": FULL_PCT}
_OF_ROWS: Final = (
    "low_below_pct", "underused_below_pct", "min_coverage", "finding_min_s", "run_min_s", "hang_min_s",
    "interactive_grace_s",
)  # fmt: skip
_ROUNDING: Final = 1e-9  # of sums of floats that query ledger_rows and a finding add up in another order
_FAR: Final = 2**53
_LATE_S: Final = 2 * DAY_S  # so long after a run's end nodes report nothing of it: ledger/unaccounted.py allows a day
GROUP_RUNS: Final = 10_000
NO_RULES: Final = -1  # for rows that are in no table of the store
_LEVELS: Final = {str(level): level for level in Level}
_JOB: Final = tuple(f.name for f in fields(JobRecord))
_RUN: Final = tuple(f.name for f in fields(JobLedger) if f.name not in {"job", "devices", "shared"})
_OWN: Final = tuple(f.name for f in fields(DeviceLedger) if f.name not in {"use", "level", "unknown", "exempt"})
_USE: Final = tuple(f.name for f in fields(DeviceUse) if not f.name.startswith("unknown"))
_SEEN: Final = tuple(f"seen_{name}" if name in _OWN else name for name in _USE)  # where a class has the same name


@dataclass(frozen=True, slots=True)
class Selection:
    """Which runs: those that overlap [start, end), UTC seconds; None is "any"."""

    start: int = 0
    end: int = _FAR
    user: str | None = None
    account: str | None = None
    clusters: Collection[str] | None = None
    accounts: Collection[ClusterAccount] | None = None
    users: tuple[str, str] | None = None  # the first and the last by name
    reader: str | None = None  # whose runs are included in addition to those of `accounts`
    running_only: bool = False
    rules: int | None = None  # leaves out runs judged by them: all that ended by judged_until
    judged_until: int = 0
    ended_by: int | None = None  # leaves out runs that are open or ended later
    edges: bool = False  # only runs that begin before the start or end after the end, and of them the part in between

    def parameters(self, now: int) -> dict[str, Any]:
        """Return the named parameters of the runs' query."""
        return {
            "now": now,
            "rules": self.rules,
            "judged_until": self.judged_until,
            "after": self.start if self.rules is None else max(self.start, self.judged_until),
            "ended_by": self.ended_by,
            "edges": self.edges,
            "from_s": self.start,
            "to_s": self.end,
            "user": self.user,
            "first_user": None if self.users is None else self.users[0],
            "last_user": None if self.users is None else self.users[1],
            "account": self.account,
            "clusters": None if self.clusters is None else sorted(self.clusters),
            "accounts": account_rows(self.accounts),
            "reader": self.reader,
            "running_only": self.running_only,
        }


def add_judged(db: Database, table: str) -> None:
    """Add the rows of the runs that were judged last to a table."""
    db.execute(query_text("kept_add").replace("kept_runs", table), {"rules": NO_RULES})


def judge_into(db: Database, table: str, selection: Selection, settings: LedgerSettings, now: int) -> None:
    """Judge as `judge_runs` does, into a table, in groups of complete users with about GROUP_RUNS runs each."""
    one_group = _FAR if selection.user is not None else GROUP_RUNS
    if _pick(db, selection, now, most=one_group + 1) <= one_group:
        if _judge_picked(db, selection, settings, now):
            add_judged(db, table)
        return
    groups: list[list[str]] = []
    runs = _FAR
    for row in db.rows("ledger_users", selection.parameters(now)):
        if runs + row["runs"] > GROUP_RUNS:
            groups.append([])
            runs = 0
        groups[-1].append(row["user"])
        runs += row["runs"]
    for group in groups:
        if judge_runs(db, replace(selection, users=(group[0], group[-1])), settings, now):
            add_judged(db, table)


def judge_runs(db: Database, selection: Selection, settings: LedgerSettings, now: int, from_hour: int = 0) -> bool:
    """Judge the selected runs in order of start; time before `from_hour` (a full UTC hour) is left out.

    With `selection.edges` each is judged by its part in the selection's window. Returns whether there is any.
    """
    _pick(db, selection, now)
    return _judge_picked(db, selection, settings, now, from_hour)


def _pick(db: Database, selection: Selection, now: int, most: int = _FAR) -> int:
    """Pick the selected runs, `most` at most; returns how many."""
    (picked,) = db.run("ledger_runs", {**selection.parameters(now), "most": most}).fetchall()
    return int(picked[0])


def _judge_picked(db: Database, selection: Selection, settings: LedgerSettings, now: int, from_hour: int = 0) -> bool:
    window = (selection.start, selection.end) if selection.edges else None
    return _judge(db, settings, now, from_hour=from_hour, window=window) is not None


def judge_due(db: Database, due: Mapping[str, Any], settings: LedgerSettings, now: int) -> bool:
    """Judge the runs that query judged_due picks by `due`, in order of their end; returns whether there is any."""
    db.run("judged_due", due)
    return _judge(db, settings, now) is not None


def judge_job(db: Database, settings: LedgerSettings, now: int) -> list[JobLedger]:
    """Judge the runs that `pick_named` picked last on this connection; the result includes those not started."""
    return [ledger for _, ledger in _judge(db, settings, now, candidates=False) or ()]


def _judge(
    db: Database,
    settings: LedgerSettings,
    now: int,
    *,
    from_hour: int = 0,
    window: tuple[int, int] | None = None,
    candidates: bool = True,
) -> list[tuple[int, JobLedger]] | None:
    """Judge the runs picked last by the hours between the first start and the last end, or in the window.

    Returns all of them with their positions, with `candidates` only those that may have a finding, with a window none;
    None where no run is picked.
    """
    if not _add_up(db, settings, now, from_hour=from_hour, window=window):
        return None
    judge_seen(db, settings, now, window or (from_hour - from_hour % HOUR_S, None))
    # Findings are of complete runs: parts of runs have none.
    ledgers = list(job_ledgers(db, candidates=candidates)) if window is None else []
    name_causes(db, ledgers, settings)
    return ledgers


def judge_held(db: Database, cluster: str | None, settings: LedgerSettings, now: int) -> bool:
    """Judge each GPU of the runs of a cluster that have not ended, without sums and causes of runs."""
    _pick(db, Selection(0, now + 1, clusters=None if cluster is None else (cluster,), running_only=True), now)
    return judge_picked_gpus(db, settings, now)


def judge_picked_gpus(db: Database, settings: LedgerSettings, now: int) -> bool:
    """Judge each GPU of the open runs that were picked last on this connection; returns whether there is any."""
    if not _add_up(db, settings, now):
        return False
    judge_gpus(db, settings, now)
    return True


def _add_up(
    db: Database,
    settings: LedgerSettings,
    now: int,
    *,
    from_hour: int = 0,
    window: tuple[int, int] | None = None,
) -> bool:
    """Add up the hours of each GPU of the runs picked last; returns whether any run is picked."""
    found = db.rows("ledger_bounds", {"now": now})
    if not found:
        return False
    bounds = found[0]
    # Rows are in the order of time: with a first possible hour the store skips most of them.
    first = max(from_hour, bounds["first"])
    first -= first % HOUR_S
    db.run(
        "ledger_devices",
        {
            "cut_from_ms": None if window is None else window[0] * 1000,
            "cut_to_ms": None if window is None else window[1] * 1000,
            "from_hour": first,
            "to_hour": bounds["last"] + _LATE_S,
            # Only runs that ended are added up by day, and `from_hour` is for running ones: a day that it cuts is left
            # out, so it is unknown and never waste.
            "from_day": max(first - first % DAY_S, -(-from_hour // DAY_S) * DAY_S),
            "low_below": settings.low_below_pct,
            "high_above": settings.high_above_pct,
            **HANG_LIMITS,
        },
    )
    return True


def judge_seen(db: Database, settings: LedgerSettings, now: int, window: tuple[int, int | None] = (0, None)) -> None:
    """Judge the picked runs by the rows of their GPUs in table ledger_seen, in a window in UTC seconds."""
    judge_gpus(db, settings, now, window)
    db.run("ledger_parts")
    own = {name: getattr(settings, name) for name in _OF_ROWS}
    db.run("ledger_rows", {**own, **limits(), "rounding": _ROUNDING})


def judge_gpus(db: Database, settings: LedgerSettings, now: int, window: tuple[int, int | None] = (0, None)) -> None:
    """Judge each GPU of the picked runs by its rows in table ledger_seen, in a window in UTC seconds.

    GPUs that accounting has and no agent reported are devices without a name. GPUs beyond accounting's count are
    ignored, and so are a node's reports on a run that was never there: a node cannot report for another node's jobs.
    """
    strangers = [
        {"nodes": row["nodes"], "node": node}
        for row in db.rows("ledger_hostlists")
        for node in _strangers(row["nodes"], row["seen"])
    ]
    if strangers:
        db.run("ledger_strangers", {"rows": to_json(strangers)})
    if window[1] is not None or not window[0]:  # a part of running runs has nothing in accounting yet
        db.run("ledger_accounted", {"from_s": window[0], "to_s": window[1]})
    db.run("ledger_spans", {"now": now, "from_s": window[0], "to_s": window[1]})
    db.run(
        "ledger_gpus",
        {
            "low_below_pct": settings.low_below_pct,
            "high_above_pct": settings.high_above_pct,
            "underused_below_pct": settings.underused_below_pct,
            "min_coverage": settings.min_coverage,
            "underused_min_s": settings.underused_min_s,
            "memory_resident_ratio": settings.memory_resident_ratio,
            "now": now,
            "pending_ms": round(settings.pending_s * 1000),
            "grace_ms": round(settings.interactive_grace_s * 1000),
        },
    )


def job_ledgers(db: Database, *, candidates: bool = False) -> Iterator[tuple[int, JobLedger]]:
    """Yield the runs with their positions in order; with `candidates` only those that may have a finding."""
    chosen = {"candidates": candidates}
    devices = _devices(db, chosen)
    runs = db.answer("ledger_jobs", chosen)
    rest = zip(runs.pick(*_JOB), runs.pick(*_RUN), strict=True)
    for (place, _), (job, run) in zip(runs.pick("place", "cluster"), rest, strict=True):
        theirs = devices.get(place, [])
        own = tuple(device for device in theirs if device.use.share >= 1)
        shared = tuple(device for device in theirs if device.use.share < 1)
        yield place, JobLedger(JobRecord(*job), devices=own, shared=shared, **dict(zip(_RUN, run, strict=True)))


def _devices(db: Database, chosen: dict[str, bool]) -> dict[int, list[DeviceLedger]]:
    """Return the GPUs of each run."""
    found: dict[int, list[DeviceLedger]] = defaultdict(list)
    named: dict[tuple[int, str, str], list[DeviceLedger]] = defaultdict(list)  # GPUs without a name share a key
    answer = db.answer("ledger_devices_of", chosen)
    own = answer.pick("level", *_OWN)
    for (place, node, uuid), (level, *values), seen in zip(
        answer.pick("place", "node", "gpu_uuid"), own, answer.pick(*_SEEN), strict=True
    ):
        device = DeviceLedger(DeviceUse(*seen), _LEVELS[level], *values)
        found[place].append(device)
        named[place, node, uuid].append(device)
    for row in db.rows("ledger_parts_of", chosen):
        for device in named[row["place"], row["node"], row["gpu_uuid"]]:
            getattr(device, row["what"])[row["reason"]] = row["ms"]
    return found


def _strangers(nodes: str, seen: Collection[str]) -> Collection[str]:
    """Return which of the nodes are not in the hostlist; none where accounting has no hostlist."""
    try:
        known = frozenset(expand(nodes))
    except ParseError:
        return ()
    return [node for node in seen if node not in known] if known else ()


def name_causes(db: Database, ledgers: Iterable[tuple[int, JobLedger]], settings: LedgerSettings) -> None:
    """Store the findings of judged runs."""
    rows = []
    for place, ledger in ledgers:
        if found := [finding.to_json() for finding in causes(ledger, settings, ledger.candidate)]:
            rows.append(
                {
                    "place": place,
                    "cause_kinds": [cause["kind"] for cause in found],
                    "cause_s": [cause["wasted_gpu_s"] for cause in found],
                    "causes": storable(json.dumps(found)),
                }
            )
    db.run("ledger_causes", {"rows": to_json(rows)})

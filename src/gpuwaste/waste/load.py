"""Reads runs and what was seen of them from the hub's store, and judges them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from gpuwaste.core.hour import HOUR_S
from gpuwaste.core.job import JobRecord
from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database, QueryAnswer
from gpuwaste.store.hub.rows import job_names
from gpuwaste.waste.ledger import DeviceUse, JobLedger, judge_job
from gpuwaste.waste.settings import LedgerSettings

# A GPU that is really busy draws far more than a quarter of its limit and has most SMs at work; a kernel that waits in
# a loop for a peer keeps the duty cycle at 100 % with a few SMs and little more than idle power.
HANG_POWER_RATIO: Final = 0.25
HANG_SM_RATIO: Final = 0.1
HANG_LIMITS: Final = {"hang_power_ratio": HANG_POWER_RATIO, "hang_sm_ratio": HANG_SM_RATIO}
_JOB_FIELDS: Final = tuple(f.name for f in fields(JobRecord))
_USE_FIELDS: Final = tuple(f.name for f in fields(DeviceUse) if f.name != "unknown")
_FAR: Final = 2**53
_LATE_S: Final = 2 * DAY_S  # after a run's end its nodes tell nothing of it: hub/unaccounted.py has a day
GROUP_RUNS: Final = 10_000
_Uses = dict[int, list[DeviceUse]]
"""What was seen of the GPUs of each run, by the run's place among those that were picked."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which runs: those that overlap [start, end), UTC seconds; None is "any"."""

    start: int = 0
    end: int = _FAR
    user: str | None = None
    account: str | None = None
    cluster: str | None = None
    accounts: Collection[str] | None = None
    users: tuple[str, str] | None = None  # the first and the last in the order of names
    reader: str | None = None  # whose runs are kept beside those of `accounts`
    running_only: bool = False
    rules: int | None = None  # leaves out what is judged by them, which all are that ended by judged_until
    judged_until: int = 0
    edges: bool = False  # only runs that begin before the start or last beyond the end, and what is between

    def parameters(self, now: int) -> dict[str, Any]:
        """Return the named parameters of the runs' query."""
        return {
            "now": now,
            "rules": self.rules,
            "judged_until": self.judged_until,
            "edges": self.edges,
            "from_s": self.start,
            "to_s": self.end,
            "user": self.user,
            "first_user": None if self.users is None else self.users[0],
            "last_user": None if self.users is None else self.users[1],
            "account": self.account,
            "cluster": self.cluster,
            "accounts": None if self.accounts is None else sorted(self.accounts),
            "reader": self.reader,
            "running_only": self.running_only,
        }


def load_by_user(  # noqa: PLR0917 as load_jobs
    db: Database,
    selection: Selection,
    settings: LedgerSettings,
    now: int,
    from_hour: int = 0,
    group_runs: int = GROUP_RUNS,
) -> Iterator[list[JobLedger]]:
    """Yield what `load_jobs` returns in groups of whole users, about `group_runs` runs each.

    A run with its GPUs takes some kilobytes: a large site's month is never in memory as a whole.
    """
    if selection.user is not None:
        yield load_jobs(db, selection, settings, now, from_hour)
        return
    group: list[str] = []
    runs = 0
    for row in db.rows("waste.ledger_users", selection.parameters(now)):
        if group and runs + row["runs"] > group_runs:
            yield load_jobs(db, replace(selection, users=(group[0], group[-1])), settings, now, from_hour)
            group, runs = [], 0
        group.append(row["user"])
        runs += row["runs"]
    if group:
        yield load_jobs(db, replace(selection, users=(group[0], group[-1])), settings, now, from_hour)


def load_jobs(
    db: Database, selection: Selection, settings: LedgerSettings, now: int, from_hour: int = 0
) -> list[JobLedger]:
    """Return the selected runs in order of start; what lies before `from_hour` (a whole UTC hour) is left out.

    With `selection.edges` each is judged by what lies in the selection's window.
    """
    runs = _picked(db, "waste.ledger_runs", selection.parameters(now))
    window = (selection.start, selection.end) if selection.edges else None
    return _load(db, runs, settings, now, from_hour=from_hour, days_user=selection.user, window=window)


def load_due(db: Database, due: Mapping[str, Any], settings: LedgerSettings, now: int) -> list[JobLedger]:
    """Return the runs that query judged_due picks by `due`, in order of their end."""
    return _load(db, _picked(db, "waste.judged_due", dict(due)), settings, now)


def _load(
    db: Database,
    runs: QueryAnswer,
    settings: LedgerSettings,
    now: int,
    *,
    from_hour: int = 0,
    days_user: str | None = None,
    window: tuple[int, int] | None = None,
) -> list[JobLedger]:
    """Judge picked runs by the hours between the first start and the last end."""
    if not runs.rows:
        return []
    # Rows stand in the order of time: an hour before which there can be none lets the store skip most of them.
    first = max(from_hour, min(start for _, start in runs.pick("cluster", "run_start")))
    first -= first % HOUR_S
    # Only runs that ended are added up by day, and `from_hour` is for running ones: a day that it would cut is left
    # out, which makes it unknown and never waste.
    first_day = max(first - first % DAY_S, -(-from_hour // DAY_S) * DAY_S)
    last = max(now if end is None else end for _, end in runs.pick("cluster", "end")) + _LATE_S
    uses = _uses(db, settings, from_hour=first, to_hour=last, from_day=first_day, days_user=days_user, window=window)
    return _judge(runs, uses, settings, now, window or (from_hour - from_hour % HOUR_S, None))


def load_job(
    db: Database,
    printed_id: str,
    settings: LedgerSettings,
    now: int,
    *,
    accounts: Collection[str] | None = None,
    reader: str | None = None,
) -> list[JobLedger]:
    """Return every run of a job, array or het job, as its printed or raw id names it, started or not.

    `accounts` keeps to runs of these accounts and, where `reader` is given, to that user's own.
    """
    runs = _picked(db, "ledger_job_runs", job_names(printed_id, accounts, reader))
    return _judge(runs, _uses(db, settings) if runs.rows else {}, settings, now, (0, None))


def _picked(db: Database, query: str, parameters: dict[str, Any]) -> QueryAnswer:
    """Return the runs that a query picks; the store keeps which they are for `_uses`."""
    db.run(query, parameters)
    return db.answer("ledger_picked")


def _uses(
    db: Database,
    settings: LedgerSettings,
    *,
    from_hour: int = 0,
    to_hour: int = _FAR,
    from_day: int = 0,
    days_user: str | None = None,
    window: tuple[int, int] | None = None,
) -> _Uses:
    """Return what was seen of the GPUs of each of the runs picked last, in the window where one is given."""
    uses: _Uses = defaultdict(list)
    found = db.answer(
        "waste.ledger_devices",
        {
            "cut_from_ms": None if window is None else window[0] * 1000,
            "cut_to_ms": None if window is None else window[1] * 1000,
            "from_hour": from_hour,
            "to_hour": to_hour,
            "from_day": from_day,
            "days_user": days_user,
            "low_below": settings.low_below_pct,
            "high_above": settings.high_above_pct,
            **HANG_LIMITS,
        },
    )
    of_run = found.pick("place", "unknown_reason", "unknown_ms")
    for (place, reasons, times), values in zip(of_run, found.pick(*_USE_FIELDS), strict=True):
        use = DeviceUse(*values)
        for reason, ms in zip(reasons or (), times or (), strict=True):
            use.unknown[reason] = use.unknown.get(reason, 0) + ms
        uses[place].append(use)
    return uses


def _judge(
    runs: QueryAnswer, uses: _Uses, settings: LedgerSettings, now: int, window: tuple[int, int | None]
) -> list[JobLedger]:
    places = runs.pick("place", "whole_node")
    from_s, to_s = window
    return [
        judge_job(
            JobRecord(*values), uses.get(place, ()), settings, now, whole_node=whole_node, from_s=from_s, to_s=to_s
        )
        for (place, whole_node), values in zip(places, runs.pick(*_JOB_FIELDS), strict=True)
    ]

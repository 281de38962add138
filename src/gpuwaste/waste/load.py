"""Reads runs and what was seen of them from the hub's store, and judges them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from gpuwaste.core.hour import HOUR_S
from gpuwaste.core.job import JobRecord
from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database
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
GROUP_RUNS: Final = 10_000


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

    def parameters(self) -> dict[str, Any]:
        """Return the named parameters of the runs' query."""
        return {
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
    for row in db.rows("ledger_users", selection.parameters()):
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
    """Return the selected runs in order of start; what lies before `from_hour` (a whole UTC hour) is left out."""
    parameters = selection.parameters()
    runs = db.rows("ledger_runs", parameters)
    # Rows stand in the order of time: an hour before which there can be none lets the store skip most of them.
    first = max(from_hour, min((row["run_start"] for row in runs), default=0))
    first -= first % HOUR_S
    # Only runs that ended are added up by day, and `from_hour` is for running ones: a day that it would cut is left
    # out, which makes it unknown and never waste.
    first_day = max(first - first % DAY_S, -(-from_hour // DAY_S) * DAY_S)
    bounds = {**_thresholds(settings, first), "from_day": first_day, "days_user": selection.user}
    devices = db.rows("ledger_devices", {**parameters, **bounds}) if runs else []
    return _judge(runs, devices, settings, now, from_hour - from_hour % HOUR_S)


def load_job(db: Database, printed_id: str, settings: LedgerSettings, now: int) -> list[JobLedger]:
    """Return every run of a job, array or het job, as its printed or raw id names it, started or not."""
    parameters = {"printed_id": printed_id, "number": int(printed_id) if printed_id.isdecimal() else None}
    return _judge(
        db.rows("ledger_job_runs", parameters),
        db.rows("ledger_job_devices", {**parameters, **_thresholds(settings, 0), "from_day": 0, "days_user": None}),
        settings,
        now,
        0,
    )


def _thresholds(settings: LedgerSettings, from_hour: int) -> dict[str, Any]:
    return {
        "from_hour": from_hour,
        "low_below": settings.low_below_pct,
        "high_above": settings.high_above_pct,
        **HANG_LIMITS,
    }


def _judge(
    runs: list[dict[str, Any]], devices: list[dict[str, Any]], settings: LedgerSettings, now: int, from_s: int
) -> list[JobLedger]:
    uses: dict[tuple[str, int, int], list[DeviceUse]] = {}
    for row in devices:
        uses.setdefault((row["cluster"], row["job_id"], row["run_start"]), []).append(_device_use(row))
    return [
        judge_job(
            JobRecord(**{name: row[name] for name in _JOB_FIELDS}),
            uses.get((row["cluster"], row["job_id"], row["run_start"]), ()),
            settings,
            now,
            whole_node=row["whole_node"],
            from_s=from_s,
        )
        for row in runs
    ]


def _device_use(row: Mapping[str, Any]) -> DeviceUse:
    use = DeviceUse(**{name: row[name] for name in _USE_FIELDS})
    for reason, ms in zip(row["unknown_reason"] or (), row["unknown_ms"] or (), strict=True):
        use.unknown[reason] = use.unknown.get(reason, 0) + ms
    return use

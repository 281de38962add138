"""Hours in the hub's store: the newest version of each row, and which runs must be judged again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gpuwaste.core import log_event
from gpuwaste.jobs.run_changes import add_events, judge_again
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore, mark_of
from gpuwaste.store.hub.json_rows import Columns, to_json
from gpuwaste.store.hub.store_changes import Run

HOUR_COLUMNS: Final = Columns(AllocationHour)
HOUR_KEY: Final = ("cluster", "job_id", "run_start", "node", "gpu_uuid", "hour_utc")
_OTHER_COLUMNS: Final = "".join(
    f", {name} = s.{name}" for name in HOUR_COLUMNS.types if name not in (*HOUR_KEY, "final")
)
_ROLLED_MARK: Final = "rolled_until"  # UTC seconds: no later day was added up
_CAME_AGAIN: Final = log_event.info("old-hours-ignored: ignored {rows} hour rows of days that are already summed up")


def upsert_hours(store: HubStore, hours: Sequence[AllocationHour]) -> int:
    """Store rows: the highest seq of a key wins, in whatever order they arrive. Returns how many changed.

    A run gets a `ledger` event when hours of it became final. An hour that was added up by day stays unchanged.
    """
    if not hours:
        return 0
    rows = _rows(hours)
    with store.writing() as db:
        return _put(store, db, hours, rows)


def put_hours(store: HubStore, db: Database, hours: Sequence[AllocationHour]) -> int:
    """Store rows as `upsert_hours` does, in a transaction of the store's `writing`."""
    return _put(store, db, hours, _rows(hours)) if hours else 0


def note_rolled(store: HubStore, until: int) -> None:
    """Note that days before a UTC second may be added up from now on: earlier hours are then searched in the days.

    Not part of the exchange: a mark that is ahead of the days only costs a look-up.
    """
    if until > (store.mark(_ROLLED_MARK) or 0):
        store.set_mark(_ROLLED_MARK, until)


def _rows(hours: Sequence[AllocationHour]) -> str:
    return to_json(map(HOUR_COLUMNS.row, _one_per_key(hours)))


def _put(store: HubStore, db: Database, hours: Sequence[AllocationHour], rows: str) -> int:
    bounds = {"lo": min(h.hour_utc for h in hours), "hi": max(h.hour_utc for h in hours)}
    if bounds["lo"] < (mark_of(db, _ROLLED_MARK) or 0):
        rows = _without_rolled(db, hours, bounds)
    upsert = db.text("hours_upsert").replace("-- the other columns", _OTHER_COLUMNS)
    changed = db.execute(upsert, {**bounds, "rows": rows, "shape": HOUR_COLUMNS.shape}).fetchall()
    runs = {row[:3] for row in changed}
    store.note_changes(runs)
    judge_again(store, db, "judged_forget_hours", {"lo": bounds["lo"], "runs": _keys(runs)})
    if shared := runs & {h.key[:3] for h in hours if h.share < 1}:  # a run without GPUs was skipped
        judge_again(store, db, "ends_of", {"lo": bounds["lo"], "runs": _keys(shared)})
    add_events(db, "ledger", sorted({RunKey(*row[:3]) for row in changed if row[3]}), store.now())
    return len(changed)


def _keys(runs: Iterable[Run]) -> str:
    return to_json(dict(zip(HOUR_KEY[:3], run, strict=True)) for run in sorted(runs))


def _one_per_key(hours: Sequence[AllocationHour]) -> Iterable[AllocationHour]:
    """Return the row with the highest seq of each key; it is final if any of the key's rows is."""
    best: dict[tuple[str, int, int, str, str, int], AllocationHour] = {}
    for hour in hours:
        key = hour.key
        other = best.get(key)
        if other is None:
            best[key] = hour
        else:
            winner = hour if hour.seq > other.seq else other
            best[key] = replace(winner, final=hour.final or other.final)
    return best.values()


def _without_rolled(db: Database, hours: Sequence[AllocationHour], bounds: Mapping[str, Any]) -> str:
    """Return the rows of `_one_per_key` whose hours were not added up by day, as JSON."""
    rows = [{"no": no, **HOUR_COLUMNS.row(hour)} for no, hour in enumerate(_one_per_key(hours))]
    keys = to_json({name: row[name] for name in ("no", *HOUR_KEY)} for row in rows)
    known = {r["no"] for r in db.rows("rollup_known", {**bounds, "rows": keys})}
    if known:
        _CAME_AGAIN.log(rows=len(known))
    return to_json({k: v for k, v in row.items() if k != "no"} for row in rows if row["no"] not in known)

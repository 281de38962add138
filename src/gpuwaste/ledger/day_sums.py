"""Stored sums of the judged runs that ended on a past UTC day: a report of a year adds up days instead of runs.

A day in table summed_days has the sums of exactly the rows of table judged that ended on it: whatever adds or removes
one of these forgets the day in the same transaction, and it is summed again later.
"""

import threading
import time
from collections.abc import Mapping
from typing import Any

from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore


def sum_days(store: HubStore, rules: int, until: int, stop: threading.Event) -> int:
    """Store the sums of the days before that of `until`, UTC seconds, that lack them; returns how many days.

    Each takes the write lock, and half of the time is left to whoever waits for it.
    """
    with store.reader() as db:
        days = [row["day"] for row in db.rows("summed_days_due", {"rules": rules, "until": until})]
    for done, day in enumerate(days, 1):
        began = time.monotonic()
        which = {"rules": rules, "day": day}
        with store.writing() as db:
            for table in ("day_sums", "day_reasons"):
                db.run(f"{table}_clear", which)
                db.run(f"{table}_add", which)
            db.run("summed_days_add", which)
        if stop.wait(time.monotonic() - began):
            return done
    return len(days)


def summed_days(db: Database, which: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the last days without a gap, from and to UTC seconds, whose sums stand for their runs in a window.

    Days that end after `until`, where that is not None, are left out.
    """
    asked = {name: which[name] for name in ("rules", "from_s", "to_s", "cut")}
    if which["until"] is not None:
        asked["to_s"] = min(asked["to_s"], which["until"] + 1)
    first = last = None
    for row in db.rows("summed_days_within", asked):
        if first is not None and row["day"] != first - DAY_S:
            break
        first = row["day"]
        last = last or first + DAY_S
    return None if first is None or last is None else (first, last)


def drop(db: Database) -> None:
    """Forget what was judged, and summed, by rules that are gone."""
    for table in ("judged", "summed_days", "day_sums", "day_reasons"):
        db.run(f"{table}_drop")

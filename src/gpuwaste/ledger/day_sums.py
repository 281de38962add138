"""Stored sums of the judged runs that ended on a past UTC day: a report of a year adds up days instead of runs.

A day in table summed_days has the sums of exactly the rows of table judged that ended on it: whatever adds or removes
one of these forgets the day in the same transaction, and it is summed again later.
"""

import threading
import time

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


def drop(db: Database) -> None:
    """Forget what was judged, and summed, by rules that are gone."""
    for table in ("judged", "summed_days", "day_sums", "day_reasons"):
        db.run(f"{table}_drop")

"""Which runs were judged by which rules: the next runs to judge, and the stored sums of past days.

A day in table summed_days has the sums of exactly the rows of table judged that ended on it: code that adds or removes
such a row removes the day in the same transaction, and it is summed again later.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, Self

from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.ledger import VERSION, LedgerSettings
from gpuwaste.ledger.run_judging import judge_due
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.store_changes import Changes, Run

WRITE_RUNS: Final = 1000  # stored at a time: ingest waits meanwhile


@dataclass(frozen=True, slots=True)
class JudgingRules:
    """Thresholds and the ledger's version; every run that ended by `judged_until` is judged by them."""

    id: int
    version: int
    thresholds: str
    standing: bool
    judged_until: int

    @classmethod
    def all(cls, db: Database) -> list[Self]:
        """Return the rules of a store, those in use first."""
        return [cls(**row) for row in db.rows("rules_all")]

    def same(self, settings: LedgerSettings) -> bool:
        """Return whether these rules have the current version and these settings."""
        return self.version == VERSION and self.thresholds == settings.to_text()


def prepare(db: Database, settings: LedgerSettings) -> list[JudgingRules]:
    """Store the settings by which runs are to be judged; return the rules in use, and their replacement if any.

    In a store without rules these settings are in use at once.
    """
    rules = JudgingRules.all(db)
    if not any(one.same(settings) for one in rules):
        db.run("rules_drop")
        added = {"version": VERSION, "thresholds": settings.to_text(), "standing": not rules}
        db.run("rules_add", added)
    elif len(rules) > 1 and rules[0].same(settings):
        db.run("rules_drop")
    else:
        return rules
    drop(db)
    return JudgingRules.all(db)


def judge_next(
    store: HubStore, rules: JudgingRules, settings: LedgerSettings, now: int, limit: int
) -> tuple[JudgingRules, int]:
    """Judge up to `limit` settled runs by these rules, in the order of their ends.

    Returns the updated rules, and how many runs were judged. A run is settled when its hours have arrived or are given
    up: `pending_s` after its end. No lock is held while runs are judged; runs that change meanwhile are judged next
    time.
    """
    with store.reader() as db, store.watching() as changes:
        with db.transaction():
            rules = next(one for one in JudgingRules.all(db) if one.id == rules.id)  # late data may have set them back
            settled = now - int(settings.pending_s)
            if settled <= rules.judged_until:
                return rules, 0
            until = _until(db, rules.judged_until, settled, limit)
            due = {"from_s": rules.judged_until, "to_s": until, "limit": limit, "rules": rules.id}
            rows = db.answer("judged_keys").rows if judge_due(db, due, settings, now) else []
        runs = [((cluster, job_id, start), end) for cluster, job_id, start, end in rows]
        if len(runs) == limit:
            until = max(rules.judged_until, runs[-1][1] - 1)  # others may have ended in the same second
        return _store(store, db, rules, changes, runs=runs, until=until)


def _until(db: Database, since: int, settled: int, limit: int) -> int:
    """Return when the `limit`-th run after `since` ended; `settled` where fewer have ended by then.

    One day is tried first and usually has enough: sorting the ends of a year for each step takes as long as judging.
    """
    for until in (min(since + DAY_S, settled), settled):
        found = db.rows("judged_stretch", {"from_s": since, "to_s": until, "limit": limit})[0]
        if found["runs"] == limit:
            return int(found["last"])
    return settled


def _store(
    store: HubStore, db: Database, rules: JudgingRules, changes: Changes, *, runs: Sequence[tuple[Run, int]], until: int
) -> tuple[JudgingRules, int]:
    """Store judged runs with their ends, in batches, up to the first that has changed meanwhile."""
    done = 0
    while True:
        step = runs[done : done + WRITE_RUNS]
        with store.exchanging(db):
            fresh = sum(1 for _ in takewhile(lambda run: not changes.touches(*run), step))
            done += fresh
            to = min(runs[done][1] - 1 if done < len(runs) else until, changes.from_end - 1)
            moved = {"id": rules.id, "from_s": rules.judged_until, "until": max(rules.judged_until, int(to))}
            if fresh:
                which = {"rules": rules.id, "after": done - fresh, "last": done}
                db.run("summed_days_changed", which)
                db.run("judged_add", which)
            if not db.rows("rules_until", moved):  # late hours have set them back
                return rules, done
        rules = replace(rules, judged_until=moved["until"])
        if fresh < len(step) or done == len(runs):
            return rules, done


def stand(db: Database, rules: JudgingRules) -> None:
    """Put rules by which all runs were judged into use, in place of the previous ones."""
    db.run("rules_stand", {"id": rules.id})
    db.run("rules_drop")
    drop(db)
    db.run("judged_unpacked")


def sum_days(store: HubStore, rules: int, until: int, stop: threading.Event) -> int:
    """Store the missing sums of days before the day of `until`, UTC seconds; returns how many days.

    Each day takes the write lock; half of the time the lock is left free for others.
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
    """Remove runs judged, and sums made, by rules that no longer exist."""
    for table in ("judged", "summed_days", "day_sums", "day_reasons"):
        db.run(f"{table}_drop")

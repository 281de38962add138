"""What was judged by which rules: the next runs to judge, and the stored sums of past days.

A day in table summed_days has the sums of exactly the rows of table judged that ended on it: whatever adds or removes
one of these forgets the day in the same transaction, and it is summed again later.
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

WRITE_RUNS: Final = 1000  # stored at a time: so long ingest waits


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
        """Return the rules of a store, the standing ones first."""
        return [cls(**row) for row in db.rows("rules_all")]

    def same(self, settings: LedgerSettings) -> bool:
        """Tell whether these are today's rules with these settings."""
        return self.version == VERSION and self.thresholds == settings.to_text()


def prepare(db: Database, settings: LedgerSettings) -> list[JudgingRules]:
    """Note by which settings runs are to be judged; return the standing rules, and those to take their place if any.

    Without any rules these settings stand at once.
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
    """Judge up to `limit` settled runs by some rules, in the order of their ends.

    Returns the rules as they are then, and how many runs were judged. A run is settled when its hours are in, or given
    up: `pending_s` after its end. Nobody waits while runs are judged; what changes meanwhile is judged the next time.
    """
    with store.reader() as db, store.watching() as changes:
        with db.transaction():
            rules = next(
                one for one in JudgingRules.all(db) if one.id == rules.id
            )  # what came late may have set them back
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
    """Return when the `limit`-th run ended after `since`; `settled` where fewer have ended by then.

    Most often a day has as many: to sort the ends of a year for each step takes as long as to judge.
    """
    for until in (min(since + DAY_S, settled), settled):
        found = db.rows("judged_stretch", {"from_s": since, "to_s": until, "limit": limit})[0]
        if found["runs"] == limit:
            return int(found["last"])
    return settled


def _store(
    store: HubStore, db: Database, rules: JudgingRules, changes: Changes, *, runs: Sequence[tuple[Run, int]], until: int
) -> tuple[JudgingRules, int]:
    """Store runs that were judged, with their ends, some at a time, up to the first that has changed meanwhile."""
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
    """Let rules by which all was judged take the place of those that stood."""
    db.run("rules_stand", {"id": rules.id})
    db.run("rules_drop")
    drop(db)
    db.run("judged_unpacked")


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

"""What was judged by which rules, and the next runs to judge; whoever calls holds the store's write lock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database
from gpuwaste.store.hub.rows import to_json
from gpuwaste.waste.judged import JudgedRun
from gpuwaste.waste.ledger import VERSION
from gpuwaste.waste.load import load_due
from gpuwaste.waste.settings import LedgerSettings

_STRETCH_S: Final = 16 * DAY_S  # of ends looked at together: a small site has few runs a day


@dataclass(frozen=True, slots=True)
class Rules:
    """Thresholds and the ledger's version; every run that ended by `judged_until` is judged by them."""

    id: int
    version: int
    thresholds: str
    standing: bool
    judged_until: int

    @classmethod
    def all(cls, db: Database) -> list[Self]:
        """Return the rules of a store, the standing ones first."""
        return [cls(**row) for row in db.rows("waste.rules_all")]

    def same(self, settings: LedgerSettings) -> bool:
        """Tell whether these are today's rules with these settings."""
        return self.version == VERSION and self.thresholds == settings.to_text()


def prepare(db: Database, settings: LedgerSettings) -> list[Rules]:
    """Note by which settings runs are to be judged; return the standing rules, and those to take their place if any.

    Without any rules these settings stand at once.
    """
    rules = Rules.all(db)
    if not any(one.same(settings) for one in rules):
        db.run("waste.rules_drop")
        added = {"version": VERSION, "thresholds": settings.to_text(), "standing": not rules}
        db.run("waste.rules_add", added)
    elif len(rules) > 1 and rules[0].same(settings):
        db.run("waste.rules_drop")
    else:
        return rules
    db.run("waste.judged_drop")
    return Rules.all(db)


def judge_next(db: Database, rules: Rules, settings: LedgerSettings, now: int, limit: int) -> tuple[Rules, int]:
    """Judge up to `limit` settled runs by some rules, in the order of their ends.

    Returns the rules as they are then, and how many runs were judged. A run is settled when its hours are in, or given
    up: `pending_s` after its end.
    """
    rules = next(one for one in Rules.all(db) if one.id == rules.id)  # what came late may have set them back
    settled = now - int(settings.pending_s)
    first = db.rows("waste.judged_first", {"from_s": rules.judged_until})[0]["first"]
    until = settled if first is None else min(settled, first + _STRETCH_S)
    if until <= rules.judged_until:
        return rules, 0
    due = {"rules": rules.id, "from_s": rules.judged_until, "to_s": until, "limit": limit}
    ledgers = load_due(db, due, settings, now)
    store_judged(db, rules, [JudgedRun.of(ledger, settings) for ledger in ledgers])
    if len(ledgers) == limit:
        until = max(rules.judged_until, (ledgers[-1].job.end or 0) - 1)  # others may have ended in the same second
    db.run("waste.rules_until", {"id": rules.id, "until": until})
    return replace(rules, judged_until=until), len(ledgers)


def store_judged(db: Database, rules: Rules, runs: Sequence[JudgedRun]) -> None:
    """Store runs that were judged by some rules."""
    if runs:
        db.run("waste.judged_add", {"rows": to_json(run.to_row(rules.id) for run in runs)})


def stand(db: Database, rules: Rules) -> None:
    """Let rules by which all was judged take the place of those that stood."""
    db.run("waste.rules_stand", {"id": rules.id})
    db.run("waste.rules_drop")
    db.run("waste.judged_drop")

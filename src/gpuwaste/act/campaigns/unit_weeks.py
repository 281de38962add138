"""Outcomes of campaigns: what each user held, idled, ran and lost in a week, from the ledger and accounting.

A week is cut at its edges, so a run over two weeks counts in both by its time; a run counts as ended in the week of its
end. Weeks that have passed are kept in memory until a run of theirs changes.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gpuwaste.act.campaigns.campaign_definition import Campaign
from gpuwaste.core.clock import Clock
from gpuwaste.ledger.judged_runs import judged_runs
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.store.hub.hub_store import HubStore

_MS_PER_H: Final = 3_600_000
_MOST_WEEKS: Final = 400  # kept in memory


@dataclass(slots=True)
class WeekOutcome:
    """One unit in one week: GPU-hours that were held, idle without a known reason, and unknown; jobs that ended."""

    held_h: float = 0.0
    idle_h: float = 0.0
    unknown_h: float = 0.0
    jobs: int = 0
    failed: int = 0
    timed_out: int = 0

    def add(self, other: "WeekOutcome") -> None:
        """Add another outcome."""
        self.held_h += other.held_h
        self.idle_h += other.idle_h
        self.unknown_h += other.unknown_h
        self.jobs += other.jobs
        self.failed += other.failed
        self.timed_out += other.timed_out


Owner = tuple[str, str]
"""A user and an account of theirs."""
Week = Mapping[Owner, WeekOutcome]


def by_unit(campaign: Campaign, week: Week) -> dict[str, WeekOutcome]:
    """Return the outcomes of a campaign's units; users and accounts that it does not concern are left out.

    The unit of a job is that of its own account: a user who changes the account can be in two units.
    """
    found: dict[str, WeekOutcome] = {}
    for (user, account), outcome in week.items():
        if campaign.concerns(user, account):
            found.setdefault(campaign.unit_of(user, account), WeekOutcome()).add(outcome)
    return found


class UnitWeeks:
    """Reads weeks of a hub's store. For any thread."""

    def __init__(
        self, store: HubStore, cluster: Callable[[], str], clock: Clock, settings: Callable[[], LedgerSettings]
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._kept: dict[tuple[int, int, LedgerSettings], tuple[int, Week]] = {}
        self._lock = threading.Lock()

    def weeks(self, edges: Sequence[int]) -> list[Week]:
        """Return the outcomes of each week between two neighbouring edges, UTC seconds. Raises StoreError."""
        with self._lock:
            return [self._week(start, end) for start, end in pairwise(edges)]

    def _week(self, start: int, end: int) -> Week:
        settings = self._settings()
        key, changed = (start, end, settings), self._store.touched.last(start, end)
        kept = self._kept.get(key)
        if kept is not None and kept[0] == changed:
            return kept[1]
        found = self._read(start, end, settings)
        if len(self._kept) >= _MOST_WEEKS:
            self._kept.clear()
        self._kept[key] = (changed, found)
        return found

    def _read(self, start: int, end: int, settings: LedgerSettings) -> Week:
        cluster, now = self._cluster(), self._clock.utc_s()
        found: dict[Owner, WeekOutcome] = {}
        selection = Selection(start, end, clusters=(cluster,))
        with self._store.reader() as db:
            with judged_runs(db, selection, settings, now) as runs:
                for (user, account, _, _), sums in runs.sums().items():
                    own = sums.own
                    found.setdefault((user, account), WeekOutcome()).add(
                        WeekOutcome(
                            held_h=own.alloc_ms / _MS_PER_H,
                            idle_h=max(0, own.wasted_ms - sum(own.exempt.values())) / _MS_PER_H,
                            unknown_h=(sum(own.unknown.values()) + own.pending_ms) / _MS_PER_H,
                        )
                    )
            for row in db.rows("unit_week_jobs", {"cluster": cluster, "from": start, "to": end}):
                ended = WeekOutcome(jobs=row["jobs"], failed=row["failed"], timed_out=row["timed_out"])
                found.setdefault((row["user"], row["account"]), WeekOutcome()).add(ended)
        return found

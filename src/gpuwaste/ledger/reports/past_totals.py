"""PastTotals: what users and accounts did in windows of the past, added up for all of them at once.

Each page says how its figures compare with those of as much time before. To add up all users takes little longer than
to find the runs of one of them.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.scope import ClusterAccount
from gpuwaste.ledger.ledger_settings import LedgerSettings
from gpuwaste.ledger.open_run_snapshot import OpenRunSnapshot
from gpuwaste.ledger.reports.report import totals_by_account
from gpuwaste.ledger.reports.report_types import GpuTime
from gpuwaste.ledger.tally import Tally
from gpuwaste.store.hub.hub_store import HubStore

_MOST: Final = 8  # windows
Totals = Mapping[tuple[str, ClusterAccount], Tally]
"""By user and account of a cluster."""


@dataclass(frozen=True, slots=True)
class _Known:
    totals: Totals
    until_us: int


class PastTotals:
    """For any thread; who asks first adds up, and others wait for that."""

    def __init__(self, store: HubStore, clock: Clock, seconds: float) -> None:
        """Take for how long totals are kept."""
        self._store = store
        self._clock = clock
        self._kept_us = int(seconds * 1e6)
        self._lock = threading.Lock()
        self._known: dict[tuple[tuple[int, int], str], _Known] = {}

    def of(
        self,
        window: tuple[int, int],
        settings: LedgerSettings,
        kept: OpenRunSnapshot,
        *,
        user: str | None = None,
        account: str | None = None,
        accounts: Collection[ClusterAccount] | None = None,
    ) -> GpuTime:
        """Return the totals of a user or an account; `accounts` keeps to these. Raises OutdatedError."""
        chosen = (
            tally
            for (whose, of), tally in self._totals(window, settings, kept).items()
            if user in {None, whose} and account in {None, of.account} and (accounts is None or of in accounts)
        )
        return GpuTime(**Tally.sum(chosen).to_json())

    def _totals(self, window: tuple[int, int], settings: LedgerSettings, kept: OpenRunSnapshot) -> Totals:
        key = window, settings.to_text()
        with self._lock:
            known, now_us = self._known.get(key), self._clock.mono_us()
            if known is None or known.until_us < now_us:
                with self._store.reader() as db:
                    totals = totals_by_account(db, *window, settings, kept)
                known = self._known[key] = _Known(totals, now_us + self._kept_us)
                while len(self._known) > _MOST:
                    del self._known[next(iter(self._known))]
            return known.totals

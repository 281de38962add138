"""EnergyReads: what the energy of a report costs, by the tariff in force when it is asked for."""

from contextlib import AbstractContextManager
from typing import Final

import msgspec

from gpuwaste.core.clock import Clock
from gpuwaste.core.response_cache import ResponseCache
from gpuwaste.core.typed import decode
from gpuwaste.ledger.energy.drawn import DrawnBy, DrawnGroups, EndBins, drawn_by_group
from gpuwaste.ledger.energy.energy_costs import report_with_energy
from gpuwaste.ledger.energy.site_tariff import SiteTariff
from gpuwaste.ledger.energy.tariff import Tariff
from gpuwaste.ledger.open_runs import OLD_S
from gpuwaste.ledger.reports.report_types import ReportDocument
from gpuwaste.store.hub.hub_store import HubStore

_KEPT_B: Final = 4 << 20


class EnergyReads:
    """For any thread; at which hours energy was drawn is asked for only where the tariff is by hour."""

    def __init__(
        self, store: HubStore, tariff: SiteTariff, clock: Clock, turns: AbstractContextManager[object]
    ) -> None:
        """Take what is held while the store is asked: `turns`."""
        self._store = store
        self._tariff = tariff
        self._turns = turns
        self._clock = clock
        self._drawn = tariff.current(), ResponseCache(clock, _KEPT_B)

    def with_costs(self, document: ReportDocument, whose: DrawnBy) -> ReportDocument:
        """Return a report with what its energy costs; `whose` are the runs that it is of."""
        tariff = self._tariff.current()
        drawn = self._drawn_in(document, whose, tariff) if tariff.by_hour and document.totals.energy_j else None
        return report_with_energy(document, drawn, tariff)

    def _drawn_in(self, document: ReportDocument, whose: DrawnBy, tariff: Tariff) -> DrawnGroups:
        """Return the energy of a report's users and days by the prices of its hours."""
        window = document.start, document.end
        known, answers = self._drawn
        if known is not tariff:
            answers = ResponseCache(self._clock, _KEPT_B)
            self._drawn = tariff, answers
        key = (whose, window)
        with answers.turn(key):
            body = answers.get(key)
            if body is None:
                with self._turns, self._store.reader() as db:
                    groups = drawn_by_group(db, whose, window, tariff, EndBins(document.generated))
                body = msgspec.json.encode(groups)
                answers.keep(key, body, OLD_S)
            return decode(body, DrawnGroups)

"""EnergyReads: what the energy of a report costs, by the tariff in force when it is asked for."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Final

import msgspec

from gpuwaste.core.clock import Clock
from gpuwaste.core.cluster_account import ClusterAccount
from gpuwaste.documents.energy import report_with_energy
from gpuwaste.documents.report_types import ReportDocument
from gpuwaste.energy.drawn import DrawnBy, drawn_hours
from gpuwaste.energy.site_tariff import SiteTariff
from gpuwaste.hub.kept_answers import KeptAnswers
from gpuwaste.hub.shared_runs import OLD_S
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
        self._drawn = KeptAnswers(clock, _KEPT_B)

    def with_costs(self, document: ReportDocument, accounts: Collection[ClusterAccount] | None) -> ReportDocument:
        """Return a report with what its energy costs; `accounts` are those that the report is kept to."""
        tariff = self._tariff.current()
        drawn = self._drawn_in(document, accounts) if tariff.by_hour and document.totals.energy_j else None
        return report_with_energy(document, drawn, tariff)

    def _drawn_in(self, document: ReportDocument, accounts: Collection[ClusterAccount] | None) -> Mapping[int, float]:
        """Return joules by UTC hour."""
        whose = DrawnBy(accounts=None if accounts is None else frozenset(accounts), **_named(document))

        def drawn() -> bytes:
            with self._turns, self._store.reader() as db:
                return msgspec.json.encode(drawn_hours(db, whose, document.start, document.end))

        key = (whose, document.start, document.end)
        return msgspec.json.decode(self._drawn.made(key, OLD_S, drawn), type=dict[int, float])


def _named(document: ReportDocument) -> dict[str, str]:
    return {document.scope: document.name} if document.name or document.scope != "cluster" else {}

"""EnergyReads: the energy cost of a report or another document, by the tariff in force when it is requested."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

import msgspec
from msgspec.structs import replace

from gpuwaste.core.clock import Clock
from gpuwaste.core.response_cache import ResponseCache
from gpuwaste.core.typed import decode
from gpuwaste.core.units import DAY_S, J_PER_KWH
from gpuwaste.ledger.energy.energy_types import EnergyCost
from gpuwaste.ledger.energy.priced_energy import DrawnBy, DrawnGroups, EndBins, drawn_by_group, drawn_by_run
from gpuwaste.ledger.energy.site_tariff import SiteTariff
from gpuwaste.ledger.energy.tariff import DrawnEnergy, MeanRate, Tariff
from gpuwaste.ledger.open_runs import OLD_S
from gpuwaste.ledger.reports.job_types import JobDocument, RunRow
from gpuwaste.ledger.reports.report_types import DayRow, GpuTime, ReportDocument
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

_KEPT_B: Final = 4 << 20


class EnergyReads:
    """Adds energy costs. Thread-safe; energy by hour is queried only where the tariff is by hour."""

    def __init__(
        self, store: HubStore, tariff: SiteTariff, clock: Clock, turns: AbstractContextManager[object]
    ) -> None:
        """Set up; `turns` is held during queries of the store."""
        self._store = store
        self._tariff = tariff
        self._turns = turns
        self._clock = clock
        self._drawn = tariff.current(), ResponseCache(clock, _KEPT_B)

    def with_costs(self, document: ReportDocument, whose: DrawnBy) -> ReportDocument:
        """Return a report with its energy costs; `whose` are its runs."""
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


def energy_cost(totals: GpuTime | DayRow, mean: MeanRate, currency: str) -> EnergyCost | None:
    """Return what the energy of some GPUs costs; None where none was measured."""
    bill = mean.bill(totals.energy_j)
    if bill is None:
        return None
    wasted = mean.bill(totals.wasted_energy_j)
    cpu_j = totals.cpu_energy_j
    return EnergyCost(
        gpu_kwh=bill.gpu_kwh,
        kwh=bill.kwh,
        pue=mean.pue,
        measured_share=_measured(totals, totals.energy_measured_s),
        wasted_kwh=None if wasted is None else wasted.kwh,
        wasted_share=totals.wasted_energy_share,
        currency=currency,
        cost=bill.cost,
        wasted_cost=None if wasted is None else wasted.cost,
        cpu_kwh=None if cpu_j is None else cpu_j / J_PER_KWH,
        cpu_measured_share=_measured(totals, totals.cpu_energy_measured_s),
        co2e_kg=bill.co2e_kg,
        wasted_co2e_kg=None if wasted is None else wasted.co2e_kg,
        hours_without_price=mean.hours_without_price,
        hours_without_carbon=mean.hours_without_carbon,
    )


def _measured(totals: GpuTime | DayRow, measured_s: float | None) -> float | None:
    """Return the share of the GPU-time over which energy was measured."""
    active_s = totals.gpu_s - totals.pending_s
    return None if measured_s is None or active_s <= 0 else round(min(1.0, measured_s / active_s), 4)


def report_with_energy(document: ReportDocument, drawn: DrawnGroups | None, tariff: Tariff) -> ReportDocument:
    """Return a report with the energy costs of its totals, users and days.

    `drawn` is needed where the tariff is by hour; its steps are UTC days.
    """
    groups = drawn or DrawnGroups()

    def cost(sums: GpuTime | DayRow, energy: DrawnEnergy | None) -> EnergyCost | None:
        return energy_cost(sums, tariff.over(energy), tariff.currency)

    return replace(
        document,
        energy=cost(document.totals, groups.total),
        clusters=[replace(row, energy=cost(row, groups.clusters.get(row.cluster))) for row in document.clusters],
        accounts=[replace(row, energy=cost(row, groups.accounts.get(row.account))) for row in document.accounts],
        users=[replace(row, energy=cost(row, groups.users.get(row.user))) for row in document.users],
        days=[replace(row, energy=cost(row, groups.bins.get(row.day // DAY_S))) for row in document.days],
    )


def job_with_energy(db: Database, document: JobDocument, tariff: Tariff) -> JobDocument:
    """Return a job with the energy cost of each run."""
    keys = [key for run in document.runs if (key := _key(run)) is not None]
    drawn = drawn_by_run(db, keys, document.generated, tariff) if tariff.by_hour and keys else {}
    return replace(document, runs=[_run_with_energy(run, drawn, tariff) for run in document.runs])


def _run_with_energy(run: RunRow, drawn: Mapping[RunKey, DrawnEnergy], tariff: Tariff) -> RunRow:
    key = _key(run)
    if key is None:
        return run
    return replace(run, energy=energy_cost(run.totals, tariff.over(drawn.get(key)), tariff.currency))


def _key(run: RunRow) -> RunKey | None:
    return None if run.start is None else RunKey(run.cluster, run.job_id, run.start)

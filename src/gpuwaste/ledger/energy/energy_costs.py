"""Adds to documents what their energy costs."""

from collections.abc import Mapping

from msgspec.structs import replace

from gpuwaste.core.units import DAY_S, J_PER_KWH
from gpuwaste.ledger.energy.drawn import DrawnGroups, drawn_by_run
from gpuwaste.ledger.energy.energy_types import EnergyCost
from gpuwaste.ledger.energy.tariff import DrawnEnergy, MeanRate, Tariff
from gpuwaste.ledger.reports.report_types import DayRow, GpuTime, JobDocument, ReportDocument, RunRow
from gpuwaste.slurm.run import RunKey
from gpuwaste.store.database import Database


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
    """Return a report with what the energy of its totals, users and days costs.

    `drawn` is asked for where the tariff is by hour; its steps are UTC days.
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
    """Return a job with what the energy of each run costs."""
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

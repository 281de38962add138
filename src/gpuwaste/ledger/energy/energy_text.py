"""Energy costs as text, one fact per line, for reports and pages, and the parts of a report about energy."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import say_number, say_percent
from gpuwaste.ledger.energy.energy_types import EnergyCost
from gpuwaste.ledger.reports.report_types import AccountRow, DayRow
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import UNKNOWN, fit

_SMALL: Final = 100
_MAX_CURRENCY: Final = 8
_ROUNDED: Final = 0.001  # a share has four digits
_DAYS: Final = 31
_ACCOUNTS: Final = 20
_ACCOUNT: Final = 32  # characters of a name


def energy_words(energy: EnergyCost | None) -> list[tuple[str, str]]:
    """Return names and values: energy, its wasted part, cost, CO2e; empty where no energy was measured."""
    if energy is None:
        return []
    own = f"GPUs {energy_number(energy.gpu_kwh)} kWh, PUE {energy.pue:g}"
    parts = [own if energy.pue > 1 else "GPUs, without cooling"]
    if energy.measured_share is not None:
        parts.append(f"measured in {_percent(energy.measured_share)} of the GPU-time")
    energy_row = ("Energy", f"{energy_number(energy.kwh)} kWh ({'; '.join(parts)})")
    return [energy_row, ("Wasted", _wasted(energy)), *_costs(energy), *_cpus(energy)]


def _cpus(energy: EnergyCost) -> list[tuple[str, str]]:
    """Return the energy of CPUs, where it was measured."""
    if energy.cpu_kwh is None:
        return []
    share = "" if energy.cpu_measured_share is None else f" in {_percent(energy.cpu_measured_share)} of the GPU-time"
    return [("CPUs", f"{energy_number(energy.cpu_kwh)} kWh (measured{share}; not in the figures above)")]


def energy_number(value: float) -> str:
    """Return kilowatt-hours, money or kilograms of CO2e without their unit: with two decimals below 100."""
    return say_number(value, 2 if abs(value) < _SMALL else 0)


def currency_name(energy: EnergyCost) -> str:
    """Return the name of the currency."""
    return harmless(energy.currency)[:_MAX_CURRENCY]


def energy_titles(energies: Iterable[EnergyCost | None]) -> tuple[str, ...]:
    """Return the titles of the energy and cost columns of a table, each if any row has a value."""
    known = [energy for energy in energies if energy is not None]
    priced = next((energy for energy in known if energy.cost is not None), None)
    if priced is None:
        return ("kWh",) if known else ()
    return "kWh", currency_name(priced)


def _wasted(energy: EnergyCost) -> str:
    """Return the wasted part; unknown for hours of older agents."""
    if energy.wasted_kwh is None or energy.wasted_share is None:
        return "unknown"
    known = f"{energy_number(energy.wasted_kwh)} kWh"
    if _in_part(energy):
        return f"at least {known} ({_percent(energy.wasted_share)} of the energy whose class is known)"
    return f"{known} ({_percent(energy.wasted_share)})"


def _costs(energy: EnergyCost) -> list[tuple[str, str]]:
    """Return money and CO2e where the site has a price or a carbon intensity."""
    currency = currency_name(energy)
    wanted = (
        ("Cost", energy.cost, energy.wasted_cost, currency, energy.hours_without_price, "price"),
        ("CO2e", energy.co2e_kg, energy.wasted_co2e_kg, "kg", energy.hours_without_carbon, "carbon intensity"),
    )
    rows = []
    for name, value, wasted, unit, missing, what in wanted:
        if value is not None:
            more = "" if wasted is None else f", {energy_number(wasted)} {unit} of it wasted"
            rows.append((name, f"{energy_number(value)} {unit}{more}"))
        elif missing:
            hours = "1 hour has" if missing == 1 else f"{missing} hours have"
            rows.append((name, f"unknown: {hours} no {what}"))
    return rows


def _percent(ratio: float) -> str:
    return say_percent(ratio)


def energy_summary(energy: EnergyCost | None, look: Look) -> list[str]:
    """Return one line: energy, cost and CO2e, with the wasted part of each; empty where none was measured."""
    if energy is None:
        return []
    least = "at least " if _in_part(energy) else ""
    parts = [_with_waste(energy.kwh, energy.wasted_kwh, "kWh", least)]
    if energy.cost is not None:
        parts.append(_with_waste(energy.cost, energy.wasted_cost, currency_name(energy)))
    elif energy.hours_without_price:
        parts.append("cost unknown")
    if energy.co2e_kg is not None:
        parts.append(_with_waste(energy.co2e_kg, energy.wasted_co2e_kg, "kg CO2e"))
    elif energy.hours_without_carbon:
        parts.append("CO2e unknown")
    return ["", *look.bullet(f"Energy of the GPUs: {', '.join(parts)}; details: --energy")]


def _with_waste(amount: float, wasted: float | None, unit: str, least: str = "") -> str:
    part = "" if wasted is None else f" ({least}{energy_number(wasted)} wasted)"
    return f"{energy_number(amount)} {unit}{part}"


def _in_part(energy: EnergyCost) -> bool:
    """Return whether the waste is known only of a part of the energy."""
    if energy.wasted_kwh is None or energy.wasted_share is None:
        return False
    return energy.wasted_kwh < energy.wasted_share * energy.kwh * (1 - _ROUNDED)


def energy_lines(energy: EnergyCost | None, look: Look) -> list[str]:
    """Return the lines about GPU energy and its cost; empty where none was measured."""
    rows = energy_words(energy)
    if not rows:
        return []
    return [
        *look.heading("Energy of the GPUs"),
        *(line for name, value in rows for line in look.bullet(f"{name}: {value}")),
    ]


def energy_headers(energies: Iterable[EnergyCost | None]) -> tuple[str, ...]:
    """Return the headers of the energy and cost columns, each if any row has a value."""
    return tuple(title.upper() for title in energy_titles(energies))


def energy_cells(energy: EnergyCost | None, headers: Sequence[str]) -> tuple[str, ...]:
    """Return a row's cells under such headers."""
    numbers = (None, None) if energy is None else (energy.kwh, energy.cost)
    return tuple(UNKNOWN if value is None else energy_number(value) for value in numbers[: len(headers)])


def energy_account_lines(accounts: Sequence[AccountRow], look: Look) -> list[str]:
    """Return the energy of each account and its cost, the largest first; empty where none was measured."""
    headers = energy_headers(row.energy for row in accounts)
    if not headers:
        return []
    known = sorted(accounts, key=lambda row: (-(row.energy_j or 0.0), row.account))
    cells = [
        (str(row.jobs), *energy_cells(row.energy, headers), fit(row.account, _ACCOUNT)) for row in known[:_ACCOUNTS]
    ]
    lines = look.heading("Energy by account")
    lines += look.table(("JOBS", *headers, "ACCOUNT"), cells, frozenset({len(headers) + 1}))
    more = len(known) - _ACCOUNTS
    return [*lines, f"  ... and {more} more accounts (--table accounts --csv prints all)"] if more > 0 else lines


def energy_day_lines(days: Sequence[DayRow], look: Look) -> list[str]:
    """Return the energy of the runs that ended on each UTC day and its cost; empty where none was measured."""
    headers = energy_headers(row.energy for row in days)
    if not headers:
        return []
    cells = [
        (
            datetime.fromtimestamp(row.day, UTC).strftime("%Y-%m-%d"),
            str(row.jobs),
            *energy_cells(row.energy, headers),
        )
        for row in days[-_DAYS:]
    ]
    lines = look.heading("Energy by UTC day of job end")
    lines += look.table(("DAY", "JOBS", *headers), cells, frozenset({0}))
    earlier = len(days) - _DAYS
    return [*lines, f"  ... and {earlier} earlier days (--table days --csv prints all)"] if earlier > 0 else lines

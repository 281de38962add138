"""What energy costs in words, one fact a line: the same in reports and on pages."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import say_number
from gpuwaste.ledger.energy.energy_types import EnergyCost

_SMALL: Final = 100
_MAX_CURRENCY: Final = 8
_ROUNDED: Final = 0.001  # a share has four digits


def energy_words(energy: EnergyCost | None) -> list[tuple[str, str]]:
    """Return names and values: energy, its wasted part, cost, CO2e; nothing where no energy was measured."""
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
    """Return the titles of the columns of energy and of cost in a table, each where any row has one."""
    known = [energy for energy in energies if energy is not None]
    priced = next((energy for energy in known if energy.cost is not None), None)
    if priced is None:
        return ("kWh",) if known else ()
    return "kWh", currency_name(priced)


def _wasted(energy: EnergyCost) -> str:
    """Return the wasted part; of the hours of older agents it may not be known."""
    if energy.wasted_kwh is None or energy.wasted_share is None:
        return "not known"
    known = f"{energy_number(energy.wasted_kwh)} kWh"
    if energy.wasted_kwh < energy.wasted_share * energy.kwh * (1 - _ROUNDED):
        return f"at least {known} ({_percent(energy.wasted_share)} of the energy of which it is known)"
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
            rows.append((name, f"not known: {hours} no {what}"))
    return rows


def _percent(ratio: float) -> str:
    return f"{say_number(100 * ratio, 0)} %"

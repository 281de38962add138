"""Tariff: what a kilowatt-hour costs at each hour, and the bill of some energy. The only place that computes either.

cost = energy of the GPUs x PUE x price, CO2e = energy of the GPUs x PUE x carbon intensity. Where a tariff is by hour,
the price is the mean of the hours, weighted by the energy that was drawn in each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuwaste.core.units import J_PER_KWH


@dataclass(frozen=True, slots=True)
class EnergyPrice:
    """What a kilowatt-hour costs; None is "not known". A price below 0 occurs on electricity markets."""

    price_per_kwh: float | None = None
    g_co2e_per_kwh: float | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """Some energy in kilowatt-hours, money and CO2e; None is "not known"."""

    gpu_kwh: float
    kwh: float  # including cooling and power supply: gpu_kwh x PUE
    cost: float | None
    co2e_kg: float | None


@dataclass(frozen=True, slots=True)
class DrawnEnergy:
    """Some energy, joules, and its sums over hours, each multiplied by what that hour costs and emits."""

    energy_j: float = 0.0
    priced_j: float = 0.0  # x price_per_kwh
    carbon_j: float = 0.0  # x g_co2e_per_kwh
    hours_without_price: int = 0
    hours_without_carbon: int = 0


@dataclass(frozen=True, slots=True)
class Tariff:
    """The site's prices: `flat` at any hour, or instead those of `hours` (by UTC hour, seconds)."""

    flat: EnergyPrice = EnergyPrice()
    pue: float = 1.0
    currency: str = "EUR"
    hours: Mapping[int, EnergyPrice] = field(default_factory=dict)
    priced_by_hour: bool = False
    carbon_by_hour: bool = False

    @property
    def by_hour(self) -> bool:
        """Whether a bill needs the hours at which the energy was drawn."""
        return self.priced_by_hour or self.carbon_by_hour

    def between(self, start: int, end: int) -> dict[str, list[Any]]:
        """Return the hours that begin in [start, end) and their rates, as queries take them."""
        found = [(hour, rate) for hour, rate in self.hours.items() if start <= hour < end]
        return {
            "hours": [hour for hour, _ in found],
            "price_per_kwh": [rate.price_per_kwh for _, rate in found],
            "g_co2e_per_kwh": [rate.g_co2e_per_kwh for _, rate in found],
        }

    def over(self, drawn: DrawnEnergy | None) -> "MeanRate":
        """Return the mean cost of a kilowatt-hour, weighted by the energy drawn in each hour."""
        known = drawn or DrawnEnergy()
        no_price = known.hours_without_price if self.priced_by_hour else 0
        no_carbon = known.hours_without_carbon if self.carbon_by_hour else 0
        rate = EnergyPrice(
            _mean(known.priced_j, known.energy_j, no_price) if self.priced_by_hour else self.flat.price_per_kwh,
            _mean(known.carbon_j, known.energy_j, no_carbon) if self.carbon_by_hour else self.flat.g_co2e_per_kwh,
        )
        return MeanRate(rate, self.pue, no_price, no_carbon)


def _mean(weighed: float, energy_j: float, missing: int) -> float | None:
    """Return a mean; None where an hour lacks the value, or the hours of the energy are unknown."""
    return None if missing or energy_j <= 0 else weighed / energy_j


@dataclass(frozen=True, slots=True)
class MeanRate:
    """The mean cost of a kilowatt-hour; for `hours_without_...` hours the tariff has no value."""

    rate: EnergyPrice
    pue: float
    hours_without_price: int = 0
    hours_without_carbon: int = 0

    def bill(self, energy_j: float | None) -> Bill | None:
        """Return the bill for some energy of GPUs; None where the energy is not known."""
        if energy_j is None:
            return None
        gpu_kwh = energy_j / J_PER_KWH
        kwh = gpu_kwh * self.pue
        price, grams = self.rate.price_per_kwh, self.rate.g_co2e_per_kwh
        return Bill(gpu_kwh, kwh, None if price is None else kwh * price, None if grams is None else kwh * grams / 1000)

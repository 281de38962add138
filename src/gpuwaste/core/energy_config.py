"""Section [energy] of gpuwaste.toml: what a kilowatt-hour costs the site, in money and in CO2e."""

from dataclasses import dataclass

from gpuwaste.core.typed_toml import key as _key


@dataclass(frozen=True, slots=True)
class EnergyConfig:
    """What the energy of GPUs costs; without it, reports have kilowatt-hours alone."""

    price_per_kwh: float = _key(0.0, "Price of a kilowatt-hour, in the site's currency; 0: no costs are given.")
    currency: str = _key("EUR", "Name of the currency, up to 8 characters.")
    pue: float = _key(
        1.0, "Power usage effectiveness of the site, 1 to 10: energy, cost and CO2e are multiplied by it."
    )
    g_co2e_per_kwh: float = _key(0.0, "Carbon intensity of the electricity, grams of CO2e per kWh; 0: none is given.")
    hours_file: str = _key(
        "",
        "CSV file with prices, carbon intensities or both by hour; an hour that it lacks is not known. A change of the"
        " file is read within a minute.",
    )

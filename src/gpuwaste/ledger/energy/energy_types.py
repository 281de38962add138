"""EnergyCost: the energy of GPUs in kilowatt-hours, money and CO2e, as documents carry it."""

from typing import Annotated

from msgspec import Meta, Struct

_Part = Meta(description="Part of it in wasted GPU time; null: not known.")


class EnergyCost(Struct, kw_only=True, frozen=True):
    """What was measured of some GPUs' energy and what that costs; null is "not known", never 0."""

    gpu_kwh: Annotated[float, Meta(description="Measured energy of the GPUs, kilowatt-hours.")]
    kwh: Annotated[float, Meta(description="gpu_kwh x pue, kilowatt-hours.")]
    pue: Annotated[float, Meta(description="Power usage effectiveness of the site.")]
    measured_share: Annotated[
        float | None, Meta(description="Share of the GPU-time over which the energy was measured, 0 to 1.")
    ]
    wasted_kwh: Annotated[float | None, _Part]
    wasted_share: Annotated[
        float | None,
        Meta(description="Wasted share of the energy for which it is known, 0 to 1; null: known for none."),
    ]
    currency: Annotated[str, Meta(description="Of cost and wasted_cost.")]
    cost: Annotated[float | None, Meta(description="Price of kwh; null: no price, or an hour without one.")]
    wasted_cost: Annotated[float | None, _Part]
    co2e_kg: Annotated[
        float | None, Meta(description="CO2e of kwh, kilograms; null: no carbon intensity, or an hour without one.")
    ]
    wasted_co2e_kg: Annotated[float | None, _Part]
    cpu_kwh: Annotated[
        float | None,
        Meta(description="Measured energy of the CPUs, kilowatt-hours; not part of kwh and cost."),
    ] = None
    cpu_measured_share: Annotated[
        float | None, Meta(description="Share of the GPU-time over which the energy of CPUs was measured, 0 to 1.")
    ] = None
    hours_without_price: Annotated[int, Meta(description="Hours of use that the site's file has no price for.")] = 0
    hours_without_carbon: Annotated[
        int, Meta(description="Hours of use that the site's file has no carbon intensity for.")
    ] = 0

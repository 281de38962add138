"""What a site's own measurements say about the public model: a factor for each part of a step, by GPU type.

A type that the site has measured has its own factors. Another type takes those of a measured one: all of them from its
own family, half of them (in the logarithm) from another, since drivers, libraries and cooling are the site's, kernels
are the family's.
"""

from collections.abc import Mapping
from typing import Final

from gpuwaste.estimate.public.coefficients import Part
from gpuwaste.slurm.gpu_types import GpuType, find

Factors = Mapping[Part, float]
OTHER_FAMILY: Final = 0.5


def factors_for(device: GpuType, measured: Mapping[str, Factors]) -> tuple[Factors, str]:
    """Return the factors of a type and the measured type that they are from; none and "" where nothing is measured."""
    if device.name in measured:
        return measured[device.name], device.name
    known = {name: other for name in sorted(measured) if measured[name] and (other := find(name)) is not None}
    family = {name: other for name, other in known.items() if other.family == device.family}
    if not known:
        return {}, ""
    nearest = min(family or known, key=lambda name: abs(known[name].bandwidth_gb_s - device.bandwidth_gb_s))
    if family:
        return measured[nearest], nearest
    return {part: factor**OTHER_FAMILY for part, factor in measured[nearest].items()}, nearest

"""What a site's own measurements say about the public model: a factor for each part of a step, by GPU type.

A type that the site has measured has its own factors, another type those of a measured one of its family. A type of
another family has none: on the GPUs that were measured publicly, factors of another family made the times worse
(docs/figures.md, "One type calibrated").
"""

from collections.abc import Mapping

from gpuwaste.estimate.public.coefficients import Part
from gpuwaste.slurm.gpu_types import GpuType, find

Factors = Mapping[Part, float]


def factors_for(device: GpuType, measured: Mapping[str, Factors]) -> tuple[Factors, str]:
    """Return the factors of a type and the measured type that they are from; none and "" where nothing is measured."""
    if device.name in measured:
        return measured[device.name], device.name
    known = {name: other for name in sorted(measured) if measured[name] and (other := find(name)) is not None}
    family = {name: other for name, other in known.items() if other.family == device.family}
    if not family:
        return {}, ""
    nearest = min(family, key=lambda name: abs(family[name].bandwidth_gb_s - device.bandwidth_gb_s))
    return measured[nearest], nearest

"""Programs whose time is known: a roofline of our own making, and families that are slower than it by a factor."""

import numpy as np

from gpuwaste.estimate.program import OpSum
from gpuwaste.models.time_fit import Measurements, measurements

COSTS = {"mm/bf16": (4e-6, 1e-14, 5e-13), "elem/f32": (3e-6, 0.0, 8e-13), "conv/bf16": (5e-6, 2e-14, 6e-13)}
FAMILIES = {"mlp": 1.0, "cnn": 1.2, "transformer": 0.9, "mixer": 1.1, "unet": 1.3, "residual": 0.8}
CONSTANT_S = 2e-5


def program(rng: np.random.Generator, family: str) -> dict[str, OpSum]:
    """Return a program; what it is made of depends on its family."""
    shares = np.random.default_rng(sorted(FAMILIES).index(family)).dirichlet(np.ones(len(COSTS)))
    size = float(np.exp(rng.uniform(0, 4)))
    found = {}
    for key, share in zip(COSTS, shares, strict=True):
        amount = max(0.02, share * float(rng.uniform(0.7, 1.3))) * size
        each, wide = np.exp(rng.normal(0, 0.7, 2))  # executions, FLOPs and bytes are not proportional
        flops = 1e11 * amount * wide if COSTS[key][1] else 0.0
        found[key] = OpSum(1 + round(20 * amount * each), flops, 2e9 * amount)
    return found


def true_s(sums: dict[str, OpSum], family: str) -> float:
    """Return the seconds of a program."""
    parts = [a * o.count + b * o.flops + c * o.bytes for key, o in sums.items() for a, b, c in (COSTS[key],)]
    return (CONSTANT_S + sum(parts)) * FAMILIES[family]


def planted(rows: int = 120, *, noise: float = 0.01, seed: int = 1) -> Measurements:
    """Return measured programs, families in turn."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(rows):
        family = sorted(FAMILIES)[number % len(FAMILIES)]
        sums = program(rng, family)
        found.append((sums, family, true_s(sums, family) * float(np.exp(rng.normal(0, noise))), False))
    return measurements(found)

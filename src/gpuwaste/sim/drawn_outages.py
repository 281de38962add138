"""Outages drawn from a rate: each node runs, fails and is repaired, for times of exponential distributions."""

from dataclasses import replace
from typing import Final

import numpy as np

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.units import HOUR_S
from gpuwaste.slurm.site.cluster_model import ClusterModel, Outage
from gpuwaste.slurm.site.model_checks import MAX_OUTAGES

_AT_ONCE: Final = 64


def with_failures(model: ClusterModel, seed: int, start: int, end: int) -> ClusterModel:
    """Return the model with the outages that its rates give from `start` to `end`, in addition to those of the file.

    A node runs for a mean of mtbf_h hours, then is down for a mean of repair_h (an alternating renewal process; Barlow
    and Proschan 1965), each time at least a second. A node's outages depend only on the seed and on its place among
    the nodes, so that a longer trace has the same ones first. Raises ConfigError for more than MAX_OUTAGES.
    """
    rates = model.failures
    if rates is None or end <= start:
        return model
    expected = len(model.nodes) * (end - start) / ((rates.mtbf_h + rates.repair_h) * HOUR_S)
    if expected > MAX_OUTAGES:
        raise ConfigError(
            f"mtbf_h {rates.mtbf_h}: about {expected:.0f} failures in this trace, more than {MAX_OUTAGES}: "
            "give a larger mtbf_h, or fewer jobs with --first"
        )
    means = rates.mtbf_h * HOUR_S, rates.repair_h * HOUR_S
    drawn = [
        Outage(node.name, *interval)
        for index, node in enumerate(model.nodes)
        for interval in _intervals(np.random.default_rng([seed, index]), means, start, end)
    ]
    outages = sorted((*model.outages, *drawn), key=lambda outage: (outage.start, outage.node))
    return replace(model, outages=tuple(outages), failures=None)


def _intervals(draw: np.random.Generator, means: tuple[float, float], start: int, end: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    now = float(start)
    while now < end:
        for ran, repaired in draw.exponential(means, size=(_AT_ONCE, 2)):
            begun = now + max(1.0, ran)
            now = begun + max(1.0, repaired)
            if begun >= end:
                return found
            found.append((int(begun), max(int(now), int(begun) + 1)))
    return found

"""Priorities of priority/multifactor: the parts that stay as a job waits, and their sum with age and fair share."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.compiled import in_place
from gpuwaste.sim.priority_settings import PrioritySettings

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST = 4294967295.0


class Weighted(NamedTuple):
    """Weighted parts of n jobs' priorities that do not change while they wait, for compiled code; see priority()."""

    assoc: Floats
    size: Floats
    partition: Floats
    qos: Floats
    tres: Floats
    nice: Floats
    weight_age: float
    weight_fair_share: float
    max_age_s: float


class PriorityJobs(NamedTuple):
    """What priorities depend on, n jobs.

    `limit_s` [n] the time limit, `amounts` and `available` [n, TRES] what a job asks for and what its partition has,
    `partition`, `qos`, `assoc` [n] the priorities (PriorityJobFactor, Priority) that it gets from there.
    """

    nodes: Ints
    cpus: Ints
    limit_s: Ints
    amounts: Floats
    available: Floats
    partition: Floats
    qos: Floats
    assoc: Floats
    nice: Floats


class Norms(NamedTuple):
    """What factors are normalised by: nodes and CPUs of the cluster, the largest priority of each kind."""

    nodes: int
    cpus: int
    max_partition: float
    max_qos: float
    max_assoc: float


def size_factor(jobs: PriorityJobs, norms: Norms, settings: PrioritySettings) -> Floats:
    """Return the size factor [n], 0 to 1: large jobs first, or small ones with PriorityFavorSmall.

    The mean of the part of nodes and of CPUs; with SMALL_RELATIVE_TO_TIME CPUs by the minute of the limit.
    """
    if "SMALL_RELATIVE_TO_TIME" in settings.flags:
        cpus = np.maximum(jobs.nodes * (norms.cpus / norms.nodes), jobs.cpus)
        by_cpus: Floats = cpus / np.maximum(1, -(-jobs.limit_s // 60)) / norms.cpus
        found: Floats = np.clip(1.0 - by_cpus if settings.favor_small else by_cpus, 0.0, 1.0)
        return found
    if settings.favor_small:
        by_nodes, by_cpus = (norms.nodes - jobs.nodes) / norms.nodes, (norms.cpus - jobs.cpus) / norms.cpus
    else:
        by_nodes, by_cpus = jobs.nodes / norms.nodes, jobs.cpus / norms.cpus
    return np.clip(np.where(jobs.cpus > 0, (by_nodes + by_cpus) / 2, by_nodes), 0.0, 1.0)


def _normal(values: Floats, most: float, *, normal: bool) -> Floats:
    return values if not normal else values / most if most > 0 else np.zeros(len(values))


def weighted(jobs: PriorityJobs, norms: Norms, settings: PrioritySettings, weights: Floats) -> Weighted:
    """Return the parts of n jobs; `weights` [TRES] are PriorityWeightTRES as a row of the same columns."""
    flags = settings.flags
    parts = jobs.amounts
    if "NO_NORMAL_TRES" not in flags:
        parts = np.divide(jobs.amounts, jobs.available, out=np.zeros(jobs.amounts.shape), where=jobs.available > 0)
    part = _normal(jobs.partition, norms.max_partition, normal="NO_NORMAL_PART" not in flags)
    qos = _normal(jobs.qos, norms.max_qos, normal="NO_NORMAL_QOS" not in flags)
    assoc = _normal(jobs.assoc, norms.max_assoc, normal="NO_NORMAL_ASSOC" not in flags)
    return Weighted(
        assoc=assoc * settings.weight_assoc,
        size=size_factor(jobs, norms, settings) * settings.weight_size,
        partition=part * settings.weight_partition,
        qos=qos * settings.weight_qos,
        tres=(parts * weights).sum(axis=1),
        nice=jobs.nice,
        weight_age=float(settings.weight_age),
        weight_fair_share=float(settings.weight_fair_share),
        max_age_s=float(settings.max_age_s),
    )


@in_place
def priority(parts: Weighted, job: int, age_s: float, fair_share: float) -> int:
    """Return the priority of a job that has waited `age_s` since it became eligible, 1 to 2^32 - 1.

    The sum is truncated, as slurmctld's is; its terms are added in slurmctld's order.
    """
    age = min(1.0, max(0.0, age_s) / parts.max_age_s) * parts.weight_age
    found = age + parts.assoc[job] + fair_share * parts.weight_fair_share + parts.size[job] + parts.partition[job]
    found = found + parts.qos[job] + parts.tres[job] - parts.nice[job]
    return int(min(max(found, 1.0), _MOST))

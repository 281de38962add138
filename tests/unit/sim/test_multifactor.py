"""Multifactor priorities against the plain definition, and their traps."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.sim.multifactor import FLAGS, Norms, PriorityJobs, PrioritySettings, priority, weighted

pytestmark = pytest.mark.long

NORMS = Norms(nodes=10, cpus=640, max_partition=50.0, max_qos=200.0, max_assoc=0.0)
WEIGHTS = np.array([1000.0, 0.0, 0.0, 0.0, 77.5])
AVAILABLE = np.array([640.0, 2.0**40, 10.0, 0.0, 0.0])

drawn_jobs = st.fixed_dictionaries(
    {
        "nodes": st.integers(1, 12),
        "cpus": st.integers(0, 700),
        "limit_s": st.integers(1, 10**6),
        "amounts": st.lists(st.integers(0, 2**41), min_size=5, max_size=5),
        "partition": st.integers(0, 50),
        "qos": st.integers(0, 200),
        "assoc": st.integers(0, 9),
        "nice": st.integers(-(2**31), 2**31),
    }
)
drawn_settings = st.builds(
    PrioritySettings,
    weight_age=st.integers(0, 2**32 - 1),
    weight_assoc=st.integers(0, 10),
    weight_fair_share=st.integers(0, 10**6),
    weight_size=st.integers(0, 10**6),
    weight_partition=st.integers(0, 10**6),
    weight_qos=st.integers(0, 10**6),
    favor_small=st.booleans(),
    flags=st.frozensets(st.sampled_from(sorted(FLAGS))),
    max_age_s=st.sampled_from([60, 604800]),
)
Drawn = dict[str, Any]


def arrays(job: Drawn) -> PriorityJobs:
    """Return one drawn job as arrays."""
    floats = {name: np.array([float(job[name])]) for name in ("partition", "qos", "assoc", "nice")}
    ints = {name: np.array([job[name]]) for name in ("nodes", "cpus", "limit_s")}
    return PriorityJobs(
        **ints, **floats, amounts=np.array([job["amounts"]], dtype=np.float64), available=AVAILABLE[None]
    )


def clip(value: float) -> float:
    return min(1.0, max(0.0, value))


def size(job: Drawn, chosen: PrioritySettings) -> float:
    """Return the size factor by its definition."""
    nodes, cpus = job["nodes"], job["cpus"]
    if "SMALL_RELATIVE_TO_TIME" in chosen.flags:
        minutes = max(1, (job["limit_s"] + 59) // 60)
        found = max(nodes * NORMS.cpus / NORMS.nodes, cpus) / minutes / NORMS.cpus
        return clip(1 - found if chosen.favor_small else found)
    by_nodes, by_cpus = nodes / NORMS.nodes, cpus / NORMS.cpus
    if chosen.favor_small:
        by_nodes, by_cpus = (NORMS.nodes - nodes) / NORMS.nodes, (NORMS.cpus - cpus) / NORMS.cpus
    return clip((by_nodes + by_cpus) / 2 if cpus else by_nodes)


def by_definition(job: Drawn, chosen: PrioritySettings, age_s: float, fair: float) -> float:
    """Return the sum of weighted factors, before it is cut to 32 bits."""
    flags = chosen.flags
    part = job["partition"] / (1 if "NO_NORMAL_PART" in flags else NORMS.max_partition)
    qos = job["qos"] / (1 if "NO_NORMAL_QOS" in flags else NORMS.max_qos)
    assoc = job["assoc"] if "NO_NORMAL_ASSOC" in flags else 0.0  # no association has a priority: nothing to divide by
    tres = 0.0
    for amount, available, weight in zip(job["amounts"], AVAILABLE, WEIGHTS, strict=True):
        whole = 1.0 if "NO_NORMAL_TRES" in flags else available
        tres += weight * (amount / whole if whole else 0.0)
    total = min(1.0, age_s / chosen.max_age_s) * chosen.weight_age
    total += assoc * chosen.weight_assoc + fair * chosen.weight_fair_share + size(job, chosen) * chosen.weight_size
    return float(total + part * chosen.weight_partition + qos * chosen.weight_qos + tres - job["nice"])


@settings(max_examples=examples(400))
@given(job=drawn_jobs, chosen=drawn_settings, age_s=st.integers(0, 10**6), fair=st.floats(0, 1))
def test_each_priority_is_the_definition_s(job: Drawn, chosen: PrioritySettings, age_s: int, fair: float) -> None:
    """A priority is the truncated sum of weighted factors, 1 at least and 2^32 - 1 at most."""
    parts = weighted(arrays(job), NORMS, chosen, WEIGHTS)
    expected = by_definition(job, chosen, age_s, fair)
    found = priority(parts, 0, float(age_s), fair)
    assert 1 <= found <= 2**32 - 1
    assert found == pytest.approx(min(max(expected, 1.0), 2.0**32 - 1), abs=1 + 1e-9 * abs(expected))


def one(**given: float) -> PriorityJobs:
    """Return a job of one node with 64 CPUs."""
    job: Drawn = {"nodes": 1, "cpus": 64, "limit_s": 3600, "partition": 0, "qos": 0, "assoc": 0, "nice": 0}
    return arrays({**job, "amounts": [64, 0, 1, 0, 0], **given})


def test_a_priority_is_truncated_not_rounded() -> None:
    """A sum of 99.99 is 99, a negative one is 1 (0 holds a job), one above 32 bits is the largest."""
    none = np.zeros(5)
    chosen = PrioritySettings(weight_age=100, max_age_s=10**4)
    parts = weighted(one(), NORMS, chosen, none)
    assert priority(parts, 0, 9999.0, 0.0) == 99
    assert priority(parts, 0, 1e9, 0.0) == 100
    assert priority(parts, 0, -5.0, 0.0) == 1
    assert priority(weighted(one(nice=2**31), NORMS, chosen, none), 0, 0.0, 0.0) == 1
    assert priority(weighted(one(nice=-(2**33)), NORMS, chosen, none), 0, 0.0, 0.0) == 2**32 - 1


def test_a_tenth_of_the_cluster_is_a_tenth_of_the_size_weight() -> None:
    """One of ten nodes with a tenth of the CPUs gets a tenth; with PriorityFavorSmall nine tenths."""
    for favor, expected in ((False, 100), (True, 900)):
        chosen = PrioritySettings(weight_size=1000, favor_small=favor)
        assert priority(weighted(one(), NORMS, chosen, np.zeros(5)), 0, 0.0, 0.0) == expected

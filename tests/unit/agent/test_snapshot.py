"""The time for which jobs held GPUs, by use, as /metrics counts it."""

from dataclasses import replace

import pytest
from tests.unit.agent.fakes import START_US, a_gpu

from gpuwaste.agent.observation import Observation, make_samples
from gpuwaste.agent.readings import GpuAllocation, GpuReading, JobMap
from gpuwaste.agent.snapshot import LatestSnapshot
from gpuwaste.ledger.gpu_sample import Confidence


def observed(at_s: float, util_pct: float | None, *holdings: GpuAllocation) -> Observation:
    """Return an observation of one GPU, `at_s` seconds after the start."""
    reading = GpuReading("GPU-0", util_pct=util_pct)
    us = int(at_s * 1e6)
    seen = Observation(START_US + us, us, (a_gpu(0),), {"GPU-0": reading}, jobs=JobMap(holdings))
    return replace(seen, samples=tuple(make_samples(seen)))


HELD = GpuAllocation(7, "GPU-0", 0, confidence=Confidence.SINGLE)


@pytest.mark.parametrize(
    ("util_pct", "holding", "use"),
    [
        (0.0, HELD, "idle"),
        (0.5, HELD, "active"),
        (None, HELD, "unknown"),
        (0.0, replace(HELD, confidence=Confidence.CONFLICT), "unknown"),
        (0.0, replace(HELD, suspended=True), "suspended"),
    ],
)
def test_the_time_between_two_samples_has_one_use(util_pct: float | None, holding: GpuAllocation, use: str) -> None:
    """Ten seconds count once, as what the sample at their end says; what is not known is not idle."""
    snapshot = LatestSnapshot()
    snapshot.accept(observed(0, 50.0, holding))
    snapshot.accept(observed(10, util_pct, holding))
    assert snapshot.view.held_us == {("GPU-0", use): 10_000_000}


def test_a_gap_is_unknown() -> None:
    """Time that nobody measured is unknown, however idle the GPU is after it."""
    snapshot = LatestSnapshot(gap_us=25_000_000)
    for at_s in (0, 10, 40):
        snapshot.accept(observed(at_s, 0.0, HELD))
    assert snapshot.view.held_us == {("GPU-0", "idle"): 10_000_000, ("GPU-0", "unknown"): 30_000_000}


def test_a_free_gpu_counts_nothing_and_a_shared_one_once() -> None:
    """Nobody's time is no held time; two jobs on one GPU hold one GPU."""
    snapshot = LatestSnapshot()
    for at_s, holdings in ((0, ()), (10, ()), (20, (HELD, replace(HELD, job_id=8)))):
        snapshot.accept(observed(at_s, 0.0, *holdings))
    assert snapshot.view.held_us == {("GPU-0", "idle"): 10_000_000}

"""The two correctness tests of the Flux emulator's evaluation, whose answers are exact, and its double Gaussian."""

from collections.abc import Callable

import numpy as np
import pytest

from gpuwaste.sim.generated_load import GENERATORS, Load
from gpuwaste.sim.schedule_metrics import waits
from gpuwaste.sim.schedulers import conservative, easy, fcfs, sjf
from gpuwaste.sim.trace import Ints, Planned, trace_of

SCHEDULERS = (fcfs, sjf, easy, conservative)


def ten_jobs(nodes: int, machine: int) -> Load:
    """Return ten jobs of 6 minutes, submitted at once."""
    zeros = np.zeros(10, dtype=np.int64)
    return Load(zeros, zeros + 360, zeros + 600, zeros + nodes, zeros, zeros, machine)


@pytest.mark.parametrize("starts", [module.starts for module in SCHEDULERS])
@pytest.mark.parametrize(
    ("nodes", "machine", "hours", "utilization"), [(1, 1, 1.0, 1.0), (10, 30, 0.4, 0.8333)], ids=["test 1", "test 2"]
)
def test_makespan_and_utilization_are_exact(
    starts: Callable[[Planned, int], Ints], nodes: int, machine: int, hours: float, utilization: float
) -> None:
    """Ten jobs of one node on one take 1.0 h at 100 %; ten of ten nodes on thirty take 0.4 h at 83.33 %."""
    load = ten_jobs(nodes, machine)
    trace, _ = trace_of(load.table(), machine)
    found = waits(trace, starts(trace.planned(trace.limit_s), machine), machine)
    assert found.makespan_s == hours * 3600
    assert found.utilization == pytest.approx(utilization, abs=1e-4)


def test_conservative_shortens_the_double_gaussian() -> None:
    """Over seeds backfill never makes the makespan longer, and shortens it on the mean; utilization follows exactly."""
    gains = []
    for seed in range(1, 11):
        generator = GENERATORS["double_gaussian"]
        values = {key: parameter.default for key, parameter in generator.PARAMETERS.items()} | {"seed": seed}
        load = generator.drawn(values, None)
        trace, _ = trace_of(load.table(), 100)
        first, second = (
            waits(trace, module.starts(trace.planned(trace.limit_s), 100), 100) for module in (fcfs, conservative)
        )
        gains.append(1 - second.makespan_s / first.makespan_s)
        assert first.utilization * first.makespan_s == pytest.approx(second.utilization * second.makespan_s, rel=1e-4)
    assert min(gains) >= 0
    assert sum(gains) / len(gains) > 0.02

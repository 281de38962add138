"""Energy of jobs' GPUs: idle power by type, what is freed and never more than was drawn, with an interval over days."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.sim.tables import Ran, case_of, history

from gpuwaste.core.units import DAY_S, J_PER_KWH
from gpuwaste.jobs.history.job_table import Categories, GpuEnergy, JobTable
from gpuwaste.sim.difference import NamedDifference, Run, difference
from gpuwaste.sim.schedule_metrics import freed_j, idle_watts, measured_energy, used_j
from gpuwaste.sim.whatifs import gpus, policy


def table_of(idle_s: float = 3600.0) -> JobTable:
    """Return three jobs of 4 GPUs on six days: an a100 that idles at 50 W, an h100 at 80 W, and one not measured."""
    table = history([Ran(DAY_S * n, 3600, 3600, 4, active=1) for n in range(6)])
    kinds = Categories.of(["a100", "h100", ""] * 2)
    return replace(
        table,
        energy=GpuEnergy(
            gpu_type=kinds,
            joules=np.array([4e6, 5e5, np.nan] * 2),
            seconds=np.array([4 * 3600.0, 4 * 3600.0, 0.0] * 2),
            idle_joules=np.array([25 * idle_s, 40 * idle_s, 0.0] * 2),
            idle_seconds=np.array([idle_s / 2, idle_s / 2, 0.0] * 2),
        ),
    )


def test_idle_power_is_known_from_an_hour_on() -> None:
    """Two half hours of idle GPUs give the power of their type; a second less gives none; a log has none."""
    assert idle_watts(table_of()) == {"a100": 50.0, "h100": 80.0}
    assert idle_watts(table_of(3599.0)) == {}
    assert idle_watts(history([Ran(0, 10, 10)])) == {}


def test_what_is_freed_is_never_more_than_what_was_drawn() -> None:
    """Three of four GPUs for an hour: 50 W each for the a100; for the h100 more than its jobs drew, so that counts."""
    case = case_of(table_of())
    found = freed_j(case.table, case.trace, np.ones(6, np.int64))
    assert found is not None
    assert found.tolist() == [50 * 3 * 3600, 5e5, 0.0] * 2
    assert freed_j(table_of(10.0), case.trace, np.ones(6, np.int64)) is None
    assert used_j(history([Ran(0, 10, 10)])) is None


def test_the_share_that_was_measured_is_told() -> None:
    """Four of six jobs: two thirds of the GPU-hours. Of jobs that were not measured there is nothing."""
    case = case_of(table_of())
    found = measured_energy(case.table, case.trace)
    assert found is not None
    assert found.used_kwh == round(9e6 / J_PER_KWH, 6)
    assert found.measured_share == pytest.approx(2 / 3, abs=1e-6)
    assert measured_energy(case.table, case.trace.take(np.array([2, 5]))) is None


def test_rejected_jobs_draw_nothing() -> None:
    """What a policy rejects saves all that it drew; what it lets pass nothing."""
    case = replace(case_of(table_of()), refused=lambda: np.array([True, False, True, False, True, False]))
    found = policy.change(case, "").saved_j
    assert found is not None
    assert found.tolist() == [4e6, 0.0, 0.0, 0.0, 5e5, 0.0]


def test_the_difference_has_an_interval_over_days() -> None:
    """Six days are drawn again: the saved energy has an interval around its sum."""
    case = case_of(table_of())
    change = gpus.change(case, "")
    drawn = used_j(case.table)
    assert drawn is not None
    assert change.saved_j is not None
    base, changed = (Run(trace, trace.submit, 64) for trace in (case.trace, change.trace))
    named = NamedDifference("easy", "gpus", "easy", "", {}, energy=(drawn, change.saved_j))
    delta = difference(case.table, base, changed, named).figures["gpu_energy_kwh"]
    assert delta.difference == pytest.approx(-change.saved_j.sum() / J_PER_KWH, abs=1e-6)
    assert delta.low is not None
    assert delta.high is not None
    assert delta.low < delta.difference < delta.high <= 0

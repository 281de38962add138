"""Energy of CPU packages in the rows of jobs' GPUs: by CPU time, divided by GPUs, never more than was measured."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.agent.test_hour_book import HOUR_0, holding, sample

from gpuwaste.agent.cpu_energy import CpuEnergy
from gpuwaste.agent.hour_aggregator import HourAggregator
from gpuwaste.agent.meter import MeterTick
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.readings import GpuAllocation, HostUse, JobMap, PackageReading
from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.hour import AllocationHour, hour_from_wire

T0 = HOUR_0 + 1_000_000
GAP_US = 25_000_000


def rows(*readings: tuple[float | None, float | None], t0: int = T0, every_s: int = 10) -> list[AllocationHour]:
    """Return the rows of one GPU of job 7 from joules of the packages and the job's CPU seconds at each tick."""
    book = HourAggregator("gw", "gpu1", 10, 900)
    for number, (energy_j, cpu_s) in enumerate(readings):
        one = sample(t0 + 1000 * every_s * number)
        host = {} if cpu_s is None else {7: HostUse(cpu_s)}
        packages = None if energy_j is None else PackageReading(energy_j, 1, 8)
        seen = Observation(one.t_utc_us, one.mono_us, jobs=JobMap((holding(t0),)), host=host, packages=packages)
        book.observe(MeterTick(seen, {one.gpu_uuid: one}))
    return book.flush((t0 + 1000 * every_s * len(readings)) * 1000)


def test_a_job_has_its_part_of_the_node_s_cpu_time() -> None:
    """40 of the 80 CPU seconds of 10 s are half of 1000 J; 20 of 80 a quarter of 400 J: 600 J over 20 s."""
    (row,) = rows((0.0, 0.0), (1000.0, 40.0), (1400.0, 60.0))
    assert (row.cpu_energy_j, row.cpu_energy_ms) == (600, 20_000)
    wire = row.to_wire()
    assert (wire["cpu_energy_j"], wire["cpu_energy_s"]) == (600, 20)
    assert hour_from_wire(wire).cpu_energy_j == 600


def test_what_is_not_measured_is_absent() -> None:
    """Without counters, or without the job's CPU time, the fields are not on the wire: an older hub sees no change."""
    for readings in (((None, 0.0), (None, 9.0)), ((0.0, None), (100.0, None))):
        (row,) = rows(*readings)
        assert (row.cpu_energy_j, row.cpu_energy_ms) == (None, None)
        assert not {"cpu_energy_j", "cpu_energy_s"} & row.to_wire().keys()


def test_an_idle_job_has_0_and_is_measured() -> None:
    """A job that used no CPU time took none of the energy: 0 J over the time, which is not "not known"."""
    (row,) = rows((0.0, 5.0), (1000.0, 5.0))
    assert (row.cpu_energy_j, row.cpu_energy_ms) == (0, 10_000)


def test_a_gap_is_not_measured_and_hours_are_cut() -> None:
    """Of 100 s without a tick nothing is counted; an interval over a full hour is divided by time."""
    (row,) = rows((0.0, 0.0), (8000.0, 400.0), every_s=100)
    assert row.cpu_energy_j is None
    first, second = rows((0.0, 0.0), (1000.0, 80.0), t0=HOUR_0 + 3_600_000 - 4_000)
    assert (first.cpu_energy_j, first.cpu_energy_ms) == pytest.approx((400, 4_000))
    assert (second.cpu_energy_j, second.cpu_energy_ms) == pytest.approx((600, 6_000))


def test_another_generation_is_not_compared() -> None:
    """A package that came or went makes the interval unknown, whatever the sums are."""
    energy = CpuEnergy(GAP_US)
    host = {7: HostUse(0.0)}
    energy.since_last(0, PackageReading(5.0, 1, 8), host, [GpuAllocation(7, "GPU-0", 0)], stepped=False)
    found = energy.since_last(
        10_000_000, PackageReading(9.0, 2, 8), host, [GpuAllocation(7, "GPU-0", 0)], stepped=False
    )
    assert found is None


@settings(max_examples=examples(200))
@given(
    st.dictionaries(st.integers(1, 9), st.tuples(st.floats(0, 1e4), st.integers(0, 4)), max_size=9),
    st.integers(1, 64),
    st.floats(0, 1e6),
)
def test_parts_never_add_up_to_more_than_was_drawn(
    jobs: dict[int, tuple[float, int]], cpus: int, energy_j: float
) -> None:
    """Over all GPUs of all jobs the parts are at most the energy, and a job with several GPUs has equal ones."""
    energy = CpuEnergy(GAP_US)
    holdings = [GpuAllocation(job, f"GPU-{job}-{gpu}", 0) for job, (_, gpus) in jobs.items() for gpu in range(gpus)]
    energy.since_last(0, PackageReading(0.0, 1, cpus), {job: HostUse(0.0) for job in jobs}, holdings, stepped=False)
    host = {job: HostUse(cpu_s) for job, (cpu_s, _) in jobs.items()}
    found = energy.since_last(10_000_000, PackageReading(energy_j, 1, cpus), host, holdings, stepped=False)
    assert found is not None
    total_j = sum(found.watts[holding.job_id] * 10 for holding in holdings)
    assert total_j <= energy_j * (1 + 1e-9)


def test_a_row_that_says_more_time_than_its_own_is_refused() -> None:
    """The hub refuses what no agent of ours sends."""
    (row,) = rows((0.0, 0.0), (1000.0, 40.0))
    with pytest.raises(ParseError, match="cpu_energy_s is more than its time"):
        hour_from_wire(row.to_wire() | {"cpu_energy_s": 60.0})

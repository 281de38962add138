"""Profiling counters beside a utilization: they join by GPU and instance, change no utilization, and add up by hour."""

import pytest
from tests.unit.agent.fakes import START_US, FakeGpus, FakeHost, FakeMap, ListSink, a_gpu, a_scan

from gpuwaste.agent.accumulator import OpenHour
from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import Collectors
from gpuwaste.agent.hour_aggregator import HourAggregator
from gpuwaste.agent.meter import MeterTick
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.readings import GpuAllocation, GpuIdentity, GpuProfile, GpuReading, JobMap, with_profiles
from gpuwaste.agent.sampler import Sampler
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.ledger.gpu_sample import Confidence, Sample
from gpuwaste.ledger.hour import AllocationHour, hour_from_wire
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.clocks import FakeClock

BUSY = GpuReading("GPU-0", util_pct=100.0)
FEW = GpuProfile(sm_active=0.02, tensor_active=0.01, dram_active=0.1, nvlink_b_s=1000.0, pcie_b_s=2000.0)
KEY = RunKey("gw", 7, START_US // 1_000_000)


class FakeProfiles:
    """A profile collector that answers what it is given."""

    name = "dcgm"

    def __init__(self, answer: dict[tuple[str, str], GpuProfile] | Exception) -> None:
        self.answer = answer
        self.closed = 0

    def profiles(self) -> dict[tuple[str, str], GpuProfile]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.closed += 1


def tick(second: float, reading: GpuReading, jobs: JobMap) -> MeterTick:
    sample = Sample(START_US + int(second * 1e6), int(second * 1e6), reading.uuid, "", "nvml", reading.util_pct)
    seen = Observation(sample.t_utc_us, sample.mono_us, readings={reading.uuid: reading}, jobs=jobs)
    return MeterTick(seen, {reading.uuid: sample})


def hours(*readings: GpuReading, share: float = 1.0) -> list[AllocationHour]:
    """Return the rows of one GPU held from the first reading on, one reading every 10 s."""
    book = HourAggregator("gw", "gpu1", 10.0, 900.0)
    held = GpuAllocation(7, "GPU-0", START_US, KEY, share=share, confidence=Confidence.SINGLE)
    for number, reading in enumerate(readings):
        book.observe(tick(10.0 * number, reading, JobMap((held,))))
    return book.flush(START_US + int(len(readings) * 1e7))


def profiled(profile: GpuProfile | None, util_pct: float | None = 100.0) -> GpuReading:
    return GpuReading("GPU-0", util_pct=util_pct, profile=profile)


def test_a_row_has_means_and_bytes_over_the_profiled_time() -> None:
    """20 s at 2 % and 10 s at 32 % of the SMs are 12 % over 30 s; rates become bytes."""
    more = GpuProfile(sm_active=0.32, tensor_active=0.01, dram_active=0.1, nvlink_b_s=0.0, pcie_b_s=0.0)
    (row,) = hours(*(profiled(p) for p in (None, FEW, FEW, None, more)))
    assert row.profiled_ms == 30_000
    assert row.sm_active == pytest.approx(0.12)
    assert (row.nvlink_b, row.pcie_b) == (20_000, 40_000)
    assert hour_from_wire(row.to_wire()) == row


def test_what_was_not_read_all_through_is_absent() -> None:
    """A figure that one of the readings lacks is absent, however often it was read before; 0 is a value and travels."""
    (row,) = hours(
        *(profiled(p) for p in (None, GpuProfile(sm_active=0.0, dram_active=0.5), GpuProfile(sm_active=0.0)))
    )
    assert (row.sm_active, row.dram_active, row.profiled_ms) == (0.0, None, 20_000)
    assert row.to_wire()["sm_active"] == 0.0
    assert "dram_active" not in row.to_wire()


def test_rows_without_a_profile_are_those_of_before() -> None:
    """Unknown time and a shared GPU have no profile, and their rows have no field of it."""
    for rows in (hours(profiled(None), profiled(FEW, None)), hours(profiled(None), profiled(FEW), share=0.5)):
        (row,) = rows
        assert row.profiled_ms is None
        assert not {"profiled_s", "sm_active", "nvlink_b"} & row.to_wire().keys()


def test_a_row_goes_on_after_a_restart() -> None:
    """What is added to a row that was handed out before weighs as the time that it stands for."""
    (row,) = hours(profiled(None), profiled(FEW))
    again = OpenHour.reopen(row)
    again.add_profile(30_000, GpuProfile(sm_active=0.1, pcie_b_s=1.0))
    assert again.row.profiled_ms == 40_000
    assert again.row.sm_active == pytest.approx(0.08)
    assert (again.row.tensor_active, again.row.nvlink_b, again.row.pcie_b) == (None, None, 20_030)


def test_a_profile_joins_by_gpu_and_instance_and_changes_no_utilization() -> None:
    """An instance takes the profile of its parent's GPU instance; an unknown GPU's goes nowhere; utilization stays."""
    mig = GpuIdentity("MIG-1", 1, 7, parent_uuid="GPU-1", instance="2/0")
    readings = {"GPU-0": BUSY, "MIG-1": GpuReading("MIG-1", util_pct=None)}
    other = GpuProfile(sm_active=0.9)
    joined = with_profiles([a_gpu(0), mig], readings, {("GPU-0", ""): FEW, ("GPU-1", "2"): other, ("GPU-9", ""): other})
    assert joined.keys() == readings.keys()
    assert (joined["GPU-0"].profile, joined["GPU-0"].util_pct) == (FEW, 100.0)
    assert (joined["MIG-1"].profile, joined["MIG-1"].util_pct) == (other, None)


def test_counters_that_stand_still_are_no_profile() -> None:
    """All ratios at 0 while the driver saw work: another profiler holds the counters. At 0 percent zeros are true."""
    zeros = GpuProfile(sm_active=0.0, tensor_active=0.0, dram_active=0.0)
    assert with_profiles([a_gpu(0)], {"GPU-0": BUSY}, {("GPU-0", ""): zeros})["GPU-0"].profile is None
    idle = {"GPU-0": GpuReading("GPU-0", util_pct=0.0)}
    assert with_profiles([a_gpu(0)], idle, {("GPU-0", ""): zeros})["GPU-0"].profile == zeros


def test_the_sampler_asks_a_profile_collector_and_goes_on_without_it(clock: FakeClock) -> None:
    """Its values are in the readings; when it fails the GPUs are read as before, and its health says so."""
    dcgm, sink = FakeProfiles({("GPU-0", ""): FEW}), ListSink()
    sampler = Sampler(
        clock=clock, interval_s=10, collectors=Collectors([FakeGpus("nvml", a_scan(BUSY))], [FakeHost({})], [dcgm]),
        device_map=FakeMap(None), sinks=[sink], events=EventLog(clock),
    )  # fmt: skip
    sampler.tick()
    assert sink.seen[-1].readings["GPU-0"].profile == FEW
    dcgm.answer = CollectorError("DCGM: no answer")
    clock.advance(10)
    sampler.tick()
    assert sink.seen[-1].readings["GPU-0"] == BUSY
    assert [(health.name, health.ok) for health in sampler.health] == [("nvml", True), ("host", True), ("dcgm", False)]
    sampler.close()
    assert dcgm.closed == 1

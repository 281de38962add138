"""Impossible values of drivers: unknown in every place where a reading goes, and counted by collector and reason."""

import math
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from tests.unit.agent.fakes import FakeGpus, FakeHost, FakeMap, ListSink, a_gpu

from gpuwaste.agent.collectors import Collectors
from gpuwaste.agent.collectors.nvml import NvmlCollector
from gpuwaste.agent.readings import GpuIdentity, GpuProfile, GpuReading, GpuScan
from gpuwaste.agent.sampler import Sampler
from gpuwaste.agent.valid_ranges import RANGES, ReadingCheck
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.ledger.gpu_sample import Sample, UnknownReason
from gpuwaste.testing.clocks import FakeClock

GOOD = GpuReading(
    "GPU-0", util_pct=50.0, mem_used_b=1 << 29, mem_total_b=1 << 30, power_mw=250_000, energy_mj=10**9, sm_ratio=0.5,
    profile=GpuProfile(0.5, 0.5, 0.5, 1e9, 1e9),
)  # fmt: skip
BEYOND = {  # all bits set, and what dcgm-exporter issue 418 saw on H100
    "util_pct": (808_334_905.0, 2_619.0, 100.5, -1.0),
    "mem_used_b": (2**64 - 1, (1 << 30) + 1, -1),
    "mem_total_b": (2**64 - 1, -1),
    "power_mw": (2**32 - 1, 808_334_905, -5),
    "energy_mj": (2**64 - 1, 281_474_976_710_655_000, -1),
    "sm_ratio": (1.01, -0.5),
}


def check_one(clock: FakeClock, **values: Any) -> tuple[GpuReading, dict[tuple[str, str, str], int]]:
    """Return what is left of a good reading with these values instead, and what was counted."""
    check = ReadingCheck(EventLog(clock))
    found = check.scan(GpuScan("nvml", (a_gpu(0),), {"GPU-0": replace(GOOD, **values)}))
    return found.readings["GPU-0"], dict(check.counts)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, bad in BEYOND.items() for value in bad])
def test_an_impossible_value_is_unknown_alone_and_counted(clock: FakeClock, name: str, value: float) -> None:
    """One value beyond what hardware can have is unknown; the other values of the reading stay."""
    found, counts = check_one(clock, **{name: value})
    gone: dict[str, Any] = {name: None} | ({"reason": UnknownReason.INVALID} if name == "util_pct" else {})
    assert found == replace(GOOD, **gone)
    assert counts == {("nvml", RANGES[name].quantity, "below" if value < 0 else "above"): 1}


@pytest.mark.parametrize("name", ["util_pct", "sm_ratio"])
def test_what_is_no_number_is_unknown(clock: FakeClock, name: str) -> None:
    """NaN is no utilization."""
    found, counts = check_one(clock, **{name: math.nan})
    assert getattr(found, name) is None
    assert counts == {("nvml", RANGES[name].quantity, "not_a_number"): 1}


def test_the_largest_hardware_is_inside_of_the_ranges(clock: FakeClock) -> None:
    """A GPU of 15 kW with 6 TB, the largest on any roadmap, and a counter after ten years of it, are values."""
    large: dict[str, Any] = {
        "util_pct": 100.0, "mem_used_b": 6 * 10**12, "mem_total_b": 6 * 10**12, "power_mw": 15_000_000,
        "energy_mj": 15_000_000 * 86_400 * 3_653, "sm_ratio": 1.0,
    }  # fmt: skip
    found, counts = check_one(clock, **large)
    assert (found, counts) == (replace(GOOD, **large), {})
    zeros: dict[str, Any] = {name: 0 for name in BEYOND if name != "mem_total_b"}
    assert check_one(clock, **zeros) == (replace(GOOD, **zeros), {})


def test_every_number_of_a_reading_has_its_range() -> None:
    """A quantity that is added to a reading, an identity or a profile cannot be without a range."""
    numbers = {
        field.name
        for kind in (GpuReading, GpuIdentity, GpuProfile)
        for field in fields(kind)
        if field.type in (float | None, int | None)
    }
    assert numbers - {"minor"} == set(RANGES)  # a minor is a name


def test_a_drivers_own_samples_are_checked_one_by_one(clock: FakeClock) -> None:
    """One impossible sample of three leaves the mean of the two others; three leave nothing."""
    duty = ((1, 20.0), (2, 808_334_905.0), (3, 40.0))
    found, counts = check_one(clock, duty=duty, util_pct=sum(pct for _, pct in duty) / 3)
    assert (found.duty, found.util_pct, found.reason) == (((1, 20.0), (3, 40.0)), 30.0, UnknownReason.NONE)
    assert counts == {("nvml", "utilization", "above"): 1}
    found, _ = check_one(clock, duty=((1, 2_619.0),), util_pct=2_619.0)
    assert (found.duty, found.util_pct, found.reason) == ((), None, UnknownReason.INVALID)


def test_an_identity_and_a_profile_are_checked_too(clock: FakeClock) -> None:
    """A power limit of 4.29 MW, memory of all bits set and a ratio of 2 are not known."""
    check = ReadingCheck(EventLog(clock))
    gpu = a_gpu(0, power_limit_mw=2**32 - 1, mem_total_b=2**64 - 1)
    assert check.scan(GpuScan("amd", (gpu,), {})).gpus == (replace(gpu, power_limit_mw=None, mem_total_b=None),)
    profiles = check.profiles("dcgm", {("GPU-0", ""): GpuProfile(2.0, 0.5, 0.5, 1e18, -1.0)})
    assert profiles == {("GPU-0", ""): GpuProfile(None, 0.5, 0.5, None, None)}
    assert set(check.counts) == {
        ("amd", "power_limit", "above"), ("amd", "memory_total", "above"), ("dcgm", "sm_active", "above"),
        ("dcgm", "nvlink", "above"), ("dcgm", "pcie", "below"),
    }  # fmt: skip


@pytest.mark.parametrize("source", ["nvml", "amd", "intel", "pcp"])
def test_every_vendors_reading_passes_through_the_check(
    clock: FakeClock, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No sample has an impossible value, the counter goes up, and the log names GPU and quantity once."""
    bad = replace(GOOD, util_pct=808_334_905.0, power_mw=2**32 - 1)
    sampler, sink = a_sampler(clock, FakeGpus(source, GpuScan(source, (a_gpu(0),), {"GPU-0": bad}, 1)))
    for _ in range(3):
        clock.advance(10)
        sampler.tick()
        (sample,) = sink.seen[-1].samples
        assert (sample.util_pct, sample.power_mw, sample.energy_mj) == (None, None, 10**9)
        assert sample.reason == "invalid"
    assert sampler.invalid_values == {(source, "utilization", "above"): 3, (source, "power", "above"): 3}
    said = [record.getMessage() for record in caplog.records if "impossible" in record.getMessage()]
    assert len(said) == 2
    assert f"collector {source}: impossible value (above): GPU-0 utilization" in said[0]


def test_another_collectors_good_value_is_taken_instead(clock: FakeClock) -> None:
    """Where NVML's utilization is impossible and PCP's is not, PCP's counts."""
    nvml = FakeGpus("nvml", GpuScan("nvml", (a_gpu(0),), {"GPU-0": replace(GOOD, util_pct=2_619.0)}, 1))
    pcp = FakeGpus("pcp", GpuScan("pcp", (a_gpu(0, minor=None),), {"GPU-0": GpuReading("GPU-0", util_pct=7.0)}))
    sampler, sink = a_sampler(clock, nvml, pcp)
    sampler.tick()
    (sample,) = sink.seen[-1].samples
    assert (sample.util_pct, sample.source, sample.reason) == (7.0, "pcp", "")


def a_sampler(clock: FakeClock, *gpus: FakeGpus) -> tuple[Sampler, ListSink]:
    sink = ListSink()
    sampler = Sampler(
        clock=clock, interval_s=10, collectors=Collectors(list(gpus), [FakeHost({})]), device_map=FakeMap(),
        sinks=[sink], events=EventLog(clock),
    )  # fmt: skip
    return sampler, sink


class Nvml:
    """NVML with one GPU that answers what it is given and supports nothing else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        for name in [name for name in vars(pynvml) if name.startswith(("nvmlDevice", "nvmlEvent"))]:
            monkeypatch.setattr(pynvml, name, self.unsupported)
        monkeypatch.setattr(pynvml, "nvmlGpmQueryDeviceSupport", self.unsupported)
        known = {
            "nvmlInit": None, "nvmlShutdown": None, "nvmlDeviceGetCount": 1, "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlDeviceGetHandleByUUID": "handle", "nvmlDeviceGetUUID": "GPU-0",
        }  # fmt: skip
        for name, answer in (known | answers).items():
            monkeypatch.setattr(pynvml, name, lambda *_, answer=answer: answer)

    @staticmethod
    def unsupported(*_: object) -> Any:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def nvml_sample(clock: FakeClock) -> Sample:
    sink = ListSink()
    Sampler(
        clock=clock, interval_s=10, collectors=Collectors([NvmlCollector(clock, Path("/nonexistent"))], []),
        device_map=FakeMap(), sinks=[sink], events=EventLog(clock),
    ).tick()  # fmt: skip
    (sample,) = sink.seen[-1].samples
    return sample


def test_a_driver_without_samples_that_answers_808334905_percent(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Driver 550 on H100: a busy GPU of 808,334,905 % and 4.29 MW is one of unknown use and power."""
    Nvml(
        monkeypatch,
        nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=808_334_905, memory=0),
        nvmlDeviceGetPowerUsage=2**32 - 1,
        nvmlDeviceGetMemoryInfo=SimpleNamespace(used=1, total=2),
    )
    sample = nvml_sample(clock)
    assert (sample.util_pct, sample.power_mw, sample.mem_used_b, sample.reason) == (None, None, 1, "invalid")


def test_samples_of_the_future_and_impossible_ones_leave_the_momentary_value(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample from the year 2055 does not make the agent deaf until then; one of 2,619 % is no use."""
    now_us = clock.utc_us()
    values = ((now_us + 10**15, 50), (now_us + 1, 2_619))
    samples = [SimpleNamespace(timeStamp=t, sampleValue=SimpleNamespace(uiVal=pct)) for t, pct in values]
    Nvml(
        monkeypatch,
        nvmlDeviceGetSamples=(1, samples),
        nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=30, memory=0),
    )
    sample = nvml_sample(clock)
    assert (sample.util_pct, sample.reason) == (30.0, "")

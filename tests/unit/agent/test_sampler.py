"""The sampler: its grid, failures that stay alone, gaps with their reason, attribution."""

import threading
from itertools import pairwise
from pathlib import Path

import pytest
from tests.unit.agent.fakes import FakeGpus, FakeHost, FakeMap, ListSink, a_gpu, a_scan

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import Collectors
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.readings import GpuAllocation, GpuReading, GpuScan, HostUse, JobMap, PackageReading
from gpuwaste.agent.sampler import Sampler
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample, UnknownReason
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.clocks import FakeClock

BUSY = GpuReading("GPU-0", duty=((1, 50.0),), util_pct=50.0, mem_used_b=5, pids=frozenset({7, 8, 9}))
IDLE = GpuReading("GPU-1", util_pct=0.0, pids=frozenset())


class Rig:
    """A sampler with two GPUs, and what it is made of."""

    def __init__(self, clock: FakeClock, *more: FakeGpus, jobs: JobMap | None = None) -> None:
        self.clock = clock
        self.nvml = FakeGpus("nvml", a_scan(BUSY, IDLE))
        self.host = FakeHost({})
        self.map = FakeMap(jobs)
        self.sink = ListSink()
        self.broken = ListSink("broken", OSError("disk full"))
        self.sampler = Sampler(
            clock=clock,
            interval_s=10,
            collectors=Collectors([self.nvml, *more], [self.host]),
            device_map=self.map,
            sinks=[self.broken, self.sink],
            events=EventLog(clock),
        )

    def tick(self, after_s: float = 10.0) -> dict[str, Sample]:
        """Tick once and return the samples by GPU."""
        self.clock.advance(after_s)
        self.sampler.tick()
        return {sample.gpu_uuid: sample for sample in self.sink.seen[-1].samples}


@pytest.fixture
def rig(clock: FakeClock) -> Rig:
    return Rig(clock)


def test_a_sink_that_fails_does_not_stop_the_others(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """The full disk of one sink leaves the other with every observation, is said once, and told of /metrics."""
    for _ in range(5):
        rig.tick()
    assert len(rig.sink.seen) == 5
    assert [record.message for record in caplog.records] == ["cannot write broken: disk full"]
    assert rig.sampler.sinks_ok == {"broken": False, rig.sink.name: True}


def test_the_grid_does_not_drift_and_missed_ticks_are_skipped(rig: Rig) -> None:
    """Ticks start at whole intervals from the first; one that takes 25 s costs two ticks and bunches none."""
    starts: list[int] = []

    class Slow(ListSink):
        def accept(self, seen: Observation) -> None:
            super().accept(seen)
            starts.append(rig.clock.steady_us // 1_000_000)
            rig.clock.advance(25 if len(starts) == 2 else 0.3)
            if len(starts) == 5:
                rig.sampler.stop()

    rig.sampler._sinks = [Slow()]
    rig.sampler.run()
    assert starts == [0, 10, 40, 50, 60]
    assert rig.sampler.missed == 2
    assert rig.nvml.closed


def test_a_driver_that_is_gone_makes_its_gpus_unknown_until_it_is_back(rig: Rig) -> None:
    """The GPUs stay in the list with the reason; the first reading after it covers a time that nobody measured."""
    rig.tick()
    rig.nvml.answer = CollectorError("no driver")
    assert {s.reason for s in rig.tick().values()} == {"driver"}
    rig.nvml.answer = a_scan(BUSY, IDLE)
    back = rig.tick()
    assert (back["GPU-0"].util_pct, back["GPU-0"].reason) == (None, "driver")
    assert rig.tick()["GPU-0"].util_pct == 50.0


def test_another_vendors_library_that_fails_takes_its_own_gpus_alone(clock: FakeClock) -> None:
    """One GPU stays known with the reason, the other is read on; the first reading after it covers unmeasured time."""
    amd = FakeGpus("amd", a_scan(GpuReading("GPU-1", util_pct=30.0), source="amd"))
    rig = Rig(clock, amd)
    rig.nvml.answer = a_scan(BUSY)
    assert {uuid: sample.util_pct for uuid, sample in rig.tick().items()} == {"GPU-0": 50.0, "GPU-1": 30.0}
    found, amd.answer = amd.answer, CollectorError("no answer")
    failed = rig.tick()
    assert (failed["GPU-0"].util_pct, failed["GPU-0"].reason) == (50.0, "")
    assert (failed["GPU-1"].source, failed["GPU-1"].util_pct, failed["GPU-1"].reason) == ("amd", None, "driver")
    amd.answer = found
    back = rig.tick()
    assert (back["GPU-0"].util_pct, back["GPU-1"].util_pct, back["GPU-1"].reason) == (50.0, None, "driver")
    assert rig.tick()["GPU-1"].util_pct == 30.0


def test_a_failing_collector_is_asked_with_growing_waits(rig: Rig) -> None:
    """Out of 40 ticks a driver that stays away is asked at the 1st, 2nd, 4th, 8th, 16th and 32nd."""
    rig.nvml.answer = CollectorError("no driver")
    asked = []
    for number in range(1, 41):
        before = rig.nvml.scans
        rig.tick()
        if rig.nvml.scans > before:
            asked.append(number)
    assert asked == [1, 2, 4, 8, 16, 32]


def test_a_defect_in_a_collector_is_its_own_failure(rig: Rig) -> None:
    """An unexpected error is treated like any failure of that collector."""
    rig.nvml.answer = ZeroDivisionError("oops")
    rig.tick()
    assert not rig.sampler.health[0].ok


def test_what_nvml_lacks_comes_from_the_second_collector(clock: FakeClock) -> None:
    """A GPU without utilization in NVML is taken from PCP, its processes still NVML's; the other stays NVML's."""
    second = FakeGpus(
        "pcp", a_scan(GpuReading("GPU-0", util_pct=1.0), GpuReading("GPU-1", util_pct=30.0), source="pcp")
    )
    rig = Rig(clock, second)
    rig.nvml.answer = a_scan(BUSY, GpuReading("GPU-1", reason=UnknownReason.NOT_SUPPORTED, pids=frozenset({4})))
    samples = rig.tick()
    assert (samples["GPU-0"].source, samples["GPU-0"].util_pct) == ("nvml", 50.0)
    assert (samples["GPU-1"].source, samples["GPU-1"].util_pct) == ("pcp", 30.0)
    assert rig.map.asked[-1][2]["GPU-1"] == frozenset({4})


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_clock_step_makes_the_interval_unknown(rig: Rig, step_s: int) -> None:
    """A wall clock that jumps between two ticks takes that one interval's utilization away, nothing else."""
    rig.tick()
    rig.clock.now_us += step_s * 1_000_000
    stepped = rig.tick()["GPU-0"]
    assert (stepped.util_pct, stepped.reason, stepped.mem_used_b) == (None, "clock_step", 5)
    assert rig.sink.seen[-1].readings["GPU-0"].duty == ()
    assert rig.tick()["GPU-0"].util_pct == 50.0


def test_a_release_closes_the_driver_until_its_time_is_over(rig: Rig) -> None:
    """While released nothing is read and the time is unknown for that reason; then reading starts again."""
    rig.tick()
    rig.sampler.release(15, timeout_s=0)
    assert {s.reason for s in rig.tick().values()} == {"released"}
    assert (rig.nvml.closed, rig.nvml.scans) == (1, 1)
    rig.tick()
    rig.tick()
    assert rig.nvml.scans == 2
    assert rig.tick()["GPU-0"].util_pct == 50.0


def test_a_release_does_not_wait_for_the_next_tick(rig: Rig) -> None:
    """The sampling thread closes the driver while it waits, and tells the one who asked."""
    answers: list[bool] = []

    def ask() -> None:
        rig.clock.on_wait = None
        asker = threading.Thread(target=lambda: answers.append(rig.sampler.release(60, timeout_s=10)))
        asker.start()
        rig.sampler._wake.wait(10)
        rig.sampler._serve_release()
        asker.join()
        rig.sampler.stop()

    rig.clock.on_wait = ask
    rig.sampler.run()
    assert answers == [True]


def test_samples_carry_the_holding_and_the_jobs_own_processes(clock: FakeClock) -> None:
    """A held GPU's sample has job, run key, source and confidence, and counts only processes of that job."""
    key = RunKey("c", 5, 1000)
    holding = GpuAllocation(5, "GPU-0", 0, key, 1.0, MapSource.PROLOG, Confidence.CONFIRMED)
    rig = Rig(clock, jobs=JobMap((holding,)))
    rig.host.answer = {5: HostUse(1.0, 10, frozenset({7, 9, 11}))}
    samples = rig.tick()
    held, free = samples["GPU-0"], samples["GPU-1"]
    assert (held.job_id, held.run_key, held.procs) == (5, key, 2)
    assert (held.map_source, held.confidence) == (MapSource.PROLOG, Confidence.CONFIRMED)
    assert (free.job_id, free.procs, free.reason) == (None, None, "")


def test_processes_are_unknown_without_the_host_collector(clock: FakeClock) -> None:
    """Where the job's processes are not known the count is None; a GPU without any process has 0."""
    rig = Rig(clock, jobs=JobMap((GpuAllocation(5, "GPU-0", 0), GpuAllocation(6, "GPU-1", 0))))
    rig.host.answer = CollectorError("no /proc")
    samples = rig.tick()
    assert (samples["GPU-0"].procs, samples["GPU-1"].procs) == (None, 0)


def test_a_gpu_that_only_slurm_has_is_unknown(clock: FakeClock) -> None:
    """A holding of a GPU that no collector knows gives a sample with the reason not_in_nvml."""
    rig = Rig(clock, jobs=JobMap((GpuAllocation(5, "missing:gpu1:3", 0),)))
    sample = rig.tick()["missing:gpu1:3"]
    assert (sample.reason, sample.util_pct, sample.job_id) == ("not_in_nvml", None, 5)


def test_conflicts_and_suspension_are_reasons(clock: FakeClock) -> None:
    """A conflict, of a holding or of a whole GPU, and a suspended job stand in the sample's reason."""
    torn = GpuAllocation(5, "GPU-0", 0, confidence=Confidence.CONFLICT, reason=UnknownReason.NOT_IN_NVML)
    rig = Rig(clock, jobs=JobMap((torn,), unmapped={"GPU-1": UnknownReason.CONFLICT}))
    samples = rig.tick()
    assert (samples["GPU-0"].reason, samples["GPU-1"].reason) == ("not_in_nvml", "conflict")
    assert samples["GPU-1"].confidence is Confidence.CONFLICT
    rig.map.jobs = JobMap((GpuAllocation(5, "GPU-0", 0, suspended=True),))
    assert rig.tick()["GPU-0"].reason == "suspended"


def test_a_shared_gpu_has_one_sample_for_each_holder(clock: FakeClock) -> None:
    """Two jobs on shards of one GPU give two samples of it."""
    rig = Rig(clock, jobs=JobMap((GpuAllocation(5, "GPU-0", 0, share=0.5), GpuAllocation(6, "GPU-0", 0, share=0.5))))
    rig.tick()
    assert [(s.gpu_uuid, s.job_id) for s in rig.sink.seen[-1].samples] == [
        ("GPU-0", 5),
        ("GPU-0", 6),
        ("GPU-1", None),
    ]


def test_a_device_map_that_fails_leaves_the_samples(rig: Rig, tmp_path: Path) -> None:
    """Without a map the readings are kept, unattributed."""

    class Broken(FakeMap):
        def update(self, *_: object) -> JobMap:
            raise OSError("spool directory is gone")

    rig.sampler._device_map = Broken()
    assert {(s.job_id, s.confidence) for s in rig.tick().values()} == {(None, Confidence.CONFLICT)}


def test_identity_without_a_minor_is_filled_from_an_earlier_scan(clock: FakeClock) -> None:
    """When only PCP answers, which knows no minors, the GPU keeps the minor that NVML gave."""
    pcp = FakeGpus("pcp", GpuScan("pcp", (a_gpu(0, minor=None),), {"GPU-0": GpuReading("GPU-0", util_pct=1.0)}))
    rig = Rig(clock, pcp)
    rig.tick()
    rig.nvml.answer = CollectorError("no driver")
    rig.tick()
    assert [gpu.minor for gpu in rig.sink.seen[-1].gpus if gpu.uuid == "GPU-0"] == [10]


def test_signs_of_life_come_between_ticks_too(rig: Rig) -> None:
    """With a minute between ticks there is a sign at least every 15 s; each tick gives one as well."""
    beats: list[int] = []

    def beat() -> None:
        beats.append(rig.clock.steady_us // 1_000_000)
        if len(beats) == 9:
            rig.sampler.stop()

    rig.sampler._beat = beat
    rig.sampler._interval_us = 60_000_000
    rig.sampler.run()
    assert len(rig.sink.seen) == 2
    assert max(after - before for before, after in pairwise(beats)) <= 15


class FakePackages:
    """A collector of CPU packages that answers or fails as told."""

    name = "rapl"

    def __init__(self) -> None:
        self.answer: PackageReading | Exception = PackageReading(5.0, 1, 8)

    def read(self) -> PackageReading:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        """Nothing is open."""


def test_counters_of_cpus_that_fail_cost_nothing_else(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """What was read is in the observation; a failure leaves GPUs and host as they are, is counted and logged once."""
    packages, sink = FakePackages(), ListSink()
    sampler = Sampler(
        clock=clock, interval_s=10, device_map=FakeMap(None), sinks=[sink], events=EventLog(clock),
        collectors=Collectors([FakeGpus("nvml", a_scan(BUSY))], [FakeHost({7: HostUse(1.0)})], package=[packages]),
    )  # fmt: skip
    sampler.tick()
    assert sink.seen[-1].packages == PackageReading(5.0, 1, 8)
    packages.answer = CollectorError("RAPL: energy_uj: Permission denied")
    for _ in range(3):
        clock.advance(10)
        sampler.tick()
    after = sink.seen[-1]
    assert after.packages is None
    assert after.readings["GPU-0"].util_pct == 50.0
    assert after.host == {7: HostUse(1.0)}
    health = {health.name: health for health in sampler.health}
    assert (health["rapl"].ok, health["rapl"].failed_total, health["nvml"].failed_total) == (False, 2, 0)
    assert [record.message for record in caplog.records] == ["collector rapl: RAPL: energy_uj: Permission denied"]

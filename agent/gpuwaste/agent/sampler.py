"""The sampling thread: reads, attributes and passes on observations, on a fixed grid of the monotonic clock.

Only this thread calls the GPU collectors (concurrent NVML calls have crashed kernels), and it never waits for a network
answer other than pmproxy's on this host. A missed tick is skipped, and its time is covered by the next sample or, if
that is too late, unknown.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gpuwaste.agent.bounded_calls import Guard
from gpuwaste.agent.collectors import Collectors
from gpuwaste.agent.observation import DeviceMapper, Observation, Sink, make_samples
from gpuwaste.agent.readings import (
    GpuIdentity,
    GpuProfile,
    GpuReading,
    GpuScan,
    HostUse,
    JobMap,
    PackageReading,
    with_profiles,
)
from gpuwaste.agent.valid_ranges import ReadingCheck
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock, StepDetector
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.ledger.gpu_sample import UnknownReason

_CLOCK_SET: Final = log_event.warning(
    "clock-set: wall clock was set, GPU use of this interval is unknown",
    "Nothing to do; check chrony if it happens often.",
)
_CROSS_CHECK: Final = log_event.info(
    "memory-differs: {source} reads another memory use of {about} than the collector before"
)
_MAP_FAILED: Final = log_event.error(
    "device-map-failed: bug in gpuwaste: no device map, the jobs of this sample's GPUs are unknown: {error}",
    "A bug in gpuwaste; sampling continues. Report the line.",
)
_SINK_FAILED: Final = log_event.error(
    "sink-failed: cannot write {about}: {error}",
    "Measurements cannot be written: `hours` (outbox), `raw samples` (segments), `health file`. Check the disk "
    "and the permissions of `state_dir` and `run_dir`.",
)
_RELEASED: Final = log_event.info("gpus-released: GPUs released for {seconds:g} s")
_SAMPLED_AGAIN: Final = log_event.info("gpus-sampled-again: GPUs are sampled again")

BEAT_S: Final = 15.0  # longest time between two watchdog beats, however long the interval
_MEMORY_DIFFERS: Final = 0.25  # of a GPU's memory: two collectors that differ by more do not read the same GPU


@dataclass(frozen=True, slots=True)
class CollectorHealth:
    """The result of a collector's last reading, and how many failed since the start."""

    name: str
    ok: bool
    duration_s: float
    failed_total: int = 0


class Sampler:
    """Reads at each tick and passes an Observation to each sink."""

    def __init__(
        self,
        *,
        clock: Clock,
        interval_s: float,
        collectors: Collectors,
        device_map: DeviceMapper,
        sinks: Sequence[Sink],
        events: EventLog,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._beat = beat
        self._clock = clock
        self._interval_us = int(interval_s * 1e6)
        self._collectors = collectors
        self._gpu = [Guard[GpuScan](c.name, c.scan, clock, events, interval_s) for c in collectors.gpu]
        self._host = [Guard[dict[int, HostUse]](c.name, c.use, clock, events, interval_s) for c in collectors.host]
        self._profile = [
            Guard[Mapping[tuple[str, str], GpuProfile]](c.name, c.profiles, clock, events, interval_s)
            for c in collectors.profile
        ]
        self._package = [Guard[PackageReading](c.name, c.read, clock, events, interval_s) for c in collectors.package]
        self._device_map = device_map
        self._sinks = sinks
        self._events = events
        self._check = ReadingCheck(events)
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._asked_release_s: float | None = None
        self._released = threading.Event()
        self._released_until_us: int | None = None
        self._steps = StepDetector()
        self._known: dict[str, tuple[GpuIdentity, str]] = {}  # identity and source by uuid, of the last good scan
        self._xids: Mapping[tuple[str, int], int] = {}
        self._unread_for = UnknownReason.NONE  # the reason why the tick before had no reading at all
        self._unread: Mapping[str, UnknownReason] = {}  # by uuid, GPUs whose collector failed at the tick before
        self.sinks_ok: dict[str, bool] = {}  # by name, whether the sink accepted the last observation
        self.missed = 0

    def run(self) -> None:
        """Tick until stop(); the grid starts now and does not drift."""
        origin_us = self._clock.mono_us()
        due = 0
        while not self._stop.is_set():
            self.tick()
            self._beat()
            passed = (self._clock.mono_us() - origin_us) // self._interval_us
            self.missed += max(0, passed - due)
            due = max(due, passed) + 1
            self._wait_until(origin_us + due * self._interval_us)
        self.close()

    def stop(self) -> None:
        """End run() after the current tick."""
        self._stop.set()
        self._wake.set()

    def close(self) -> None:
        """Close all collectors."""
        for gpu in self._collectors.gpu:
            gpu.close()
        for host in self._collectors.host:
            host.close()
        for profile in self._collectors.profile:
            profile.close()
        for package in self._collectors.package:
            package.close()

    def release(self, seconds: float, timeout_s: float) -> bool:
        """Release the GPUs for a while, so that one can be reset; 0 ends that early. Thread-safe.

        Return whether the driver was closed within `timeout_s`; the current tick is not interrupted.
        """
        with self._lock:
            self._released.clear()
            self._asked_release_s = seconds
        self._wake.set()
        return self._released.wait(timeout_s)

    @property
    def invalid_values(self) -> Mapping[tuple[str, str, str], int]:
        """Impossible values since the start, by (collector, quantity, reason)."""
        return self._check.counts

    @property
    def released_for_s(self) -> float:
        """Seconds until the GPUs are read again; 0 while they are being read."""
        until_us = self._released_until_us
        return 0.0 if until_us is None else max(0.0, (until_us - self._clock.mono_us()) / 1e6)

    @property
    def health(self) -> list[CollectorHealth]:
        """The health of every collector."""
        guards: list[Guard[Any]] = [*self._gpu, *self._host, *self._profile, *self._package]
        return [CollectorHealth(guard.name, guard.ok, guard.duration_s, guard.failed_total) for guard in guards]

    def tick(self) -> None:
        """Read, attribute and pass on once."""
        self._serve_release()
        now = (self._clock.utc_us(), self._clock.mono_us())
        packages = next((found for guard in self._package if (found := guard.read()) is not None), None)
        seen = replace(self._observe(*now), packages=packages)
        if self._steps.stepped(*now):
            self._events.trouble(_CLOCK_SET, "clock")
            reason = UnknownReason.CLOCK_STEP
            seen = replace(seen, readings={u: without_utilization(r, reason) for u, r in seen.readings.items()})
        jobs = self._map(seen)
        seen = replace(seen, jobs=jobs)
        seen = replace(seen, samples=tuple(make_samples(seen)))
        for sink in self._sinks:
            self._hand(sink, seen)

    def _observe(self, utc_us: int, mono_us: int) -> Observation:
        host: dict[int, HostUse] = {}
        for guard in self._host:
            host.update(guard.read() or {})
        if self._released_until_us is not None:
            return self._nothing_read(utc_us, mono_us, host, UnknownReason.RELEASED)
        scans = [self._check.scan(scan) for guard in self._gpu if (scan := guard.read()) is not None]
        if not scans:
            reason = next((guard.reason for guard in self._gpu if guard.reason), UnknownReason.DRIVER)
            return self._nothing_read(utc_us, mono_us, host, reason)
        gpus, readings, sources = self._merge(scans)
        for uuid in readings:  # the time since the tick before was not measured
            if reason := self._unread.get(uuid, self._unread_for):
                readings[uuid] = without_utilization(readings[uuid], reason)
        self._unread_for = UnknownReason.NONE
        self._unread = self._left_out(readings)
        gpus = (*gpus, *(self._known[uuid][0] for uuid in self._unread))
        readings |= {uuid: GpuReading(uuid, reason=reason) for uuid, reason in self._unread.items()}
        sources |= {uuid: self._known[uuid][1] for uuid in self._unread}
        for profile in self._profile:
            readings = with_profiles(gpus, readings, self._check.profiles(profile.name, profile.read() or {}))
        self._known = {gpu.uuid: (gpu, sources[gpu.uuid]) for gpu in gpus}
        self._xids = {key: count for scan in scans for key, count in scan.xids.items()} or self._xids
        return Observation(utc_us, mono_us, gpus, readings, sources, host=host, xids=self._xids)

    def _left_out(self, readings: Mapping[str, GpuReading]) -> dict[str, UnknownReason]:
        """Return the GPUs missing from all scans because their collector failed, with its reason."""
        failed = {guard.name: guard.reason or UnknownReason.DRIVER for guard in self._gpu if not guard.ok}
        left = {uuid: source for uuid, (_, source) in self._known.items() if uuid not in readings}
        return {uuid: failed[source] for uuid, source in left.items() if source in failed}

    def _nothing_read(
        self, utc_us: int, mono_us: int, host: Mapping[int, HostUse], reason: UnknownReason
    ) -> Observation:
        """Return an observation of the known GPUs without values."""
        self._unread_for = reason
        return Observation(
            utc_us,
            mono_us,
            tuple(gpu for gpu, _ in self._known.values()),
            {uuid: GpuReading(uuid, reason=reason) for uuid in self._known},
            {uuid: source for uuid, (_, source) in self._known.items()},
            host=host,
            xids=self._xids,
        )

    def _merge(self, scans: Sequence[GpuScan]) -> tuple[tuple[GpuIdentity, ...], dict[str, GpuReading], dict[str, str]]:
        """Use for each GPU the first collector that has its utilization, else the first that has the GPU.

        A GPU's identity is from the first collector, too; fields missing there (the minor, where only PCP answers) are
        from an earlier scan.
        """
        gpus: dict[str, GpuIdentity] = {}
        readings: dict[str, GpuReading] = {}
        sources: dict[str, str] = {}
        for scan in scans:
            for gpu in scan.gpus:
                reading = scan.readings.get(gpu.uuid) or GpuReading(gpu.uuid, reason=UnknownReason.NOT_SUPPORTED)
                if gpu.uuid not in gpus:
                    known = self._known.get(gpu.uuid)
                    gpus[gpu.uuid] = known[0] if known and gpu.minor is None else gpu
                    readings[gpu.uuid], sources[gpu.uuid] = reading, scan.source
                    continue
                self._cross_check(scan.source, readings[gpu.uuid], reading)
                if readings[gpu.uuid].util_pct is None and reading.util_pct is not None:
                    pids = readings[gpu.uuid].pids if reading.pids is None else reading.pids
                    readings[gpu.uuid], sources[gpu.uuid] = replace(reading, pids=pids), scan.source
        return tuple(gpus.values()), readings, sources

    def _cross_check(self, source: str, first: GpuReading, second: GpuReading) -> None:
        if first.mem_used_b is None or second.mem_used_b is None or not first.mem_total_b:
            return
        if abs(first.mem_used_b - second.mem_used_b) > _MEMORY_DIFFERS * first.mem_total_b:
            self._events.trouble(_CROSS_CHECK, first.uuid, source=source)

    def _map(self, seen: Observation) -> JobMap:
        pids = {uuid: reading.pids for uuid, reading in seen.readings.items()}
        host_pids = {job: use.pids for job, use in seen.host.items()}
        suspended = frozenset(job for job, use in seen.host.items() if use.suspended)
        try:
            jobs = self._device_map.update(seen.t_utc_us, seen.gpus, pids, host_pids, suspended)
        except Exception as error:  # noqa: BLE001 without a map the time is unknown; the samples are kept
            self._events.trouble(_MAP_FAILED, "device map", error=f"{type(error).__name__}: {error}")
            return JobMap(unmapped={gpu.uuid: UnknownReason.CONFLICT for gpu in seen.gpus})
        self._events.over("device map")
        return jobs

    def _hand(self, sink: Sink, seen: Observation) -> None:
        try:
            sink.accept(seen)
        except Exception as error:  # noqa: BLE001 a full disk in one sink must not stop the others
            self.sinks_ok[sink.name] = False
            self._events.trouble(_SINK_FAILED, sink.name, error=str(error) or type(error).__name__)
        else:
            self.sinks_ok[sink.name] = True
            self._events.over(sink.name)

    def _serve_release(self) -> None:
        """Close or re-open the GPUs as requested; runs in the sampling thread, as all calls of collectors do."""
        with self._lock:
            asked, self._asked_release_s = self._asked_release_s, None
        now_us = self._clock.mono_us()
        if asked is not None:
            for collector in self._collectors.gpu:
                collector.close()
            self._released_until_us = now_us + int(asked * 1e6)
            _RELEASED.log(seconds=asked)
            self._released.set()
        if self._released_until_us is not None and now_us >= self._released_until_us:
            self._released_until_us = None
            for guard in self._gpu:
                guard.retry_now()
            _SAMPLED_AGAIN.log()

    def _wait_until(self, mono_us: int) -> None:
        while not self._stop.is_set():
            left_s = (mono_us - self._clock.mono_us()) / 1e6
            if left_s <= 0:
                return
            if self._clock.wait(self._wake, min(left_s, BEAT_S)):
                self._wake.clear()
                self._serve_release()
            self._beat()


def without_utilization(reading: GpuReading, reason: UnknownReason) -> GpuReading:
    """Return the reading with its utilization unknown for `reason`."""
    return replace(reading, duty=(), util_pct=None, reason=reason)

"""Collectors and a device map that say what they are told."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuwaste.agent.observation import Observation
from gpuwaste.agent.readings import GpuIdentity, GpuReading, GpuScan, HostUse, JobMap

START_US = 1_767_225_600_000_000  # 2026-01-01 00:00 UTC


class FakeGpus:
    """A GPU collector that answers what it is given: a scan, or an error to raise."""

    def __init__(self, name: str, answer: GpuScan | Exception) -> None:
        self.name = name
        self.answer = answer
        self.scans = 0
        self.closed = 0

    def scan(self) -> GpuScan:
        self.scans += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.closed += 1


class FakeHost:
    """A host collector that answers what it is given."""

    name = "host"

    def __init__(self, answer: dict[int, HostUse] | Exception) -> None:
        self.answer = answer

    def use(self) -> dict[int, HostUse]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        pass


class FakeMap:
    """A device map that knows what it is told."""

    def __init__(self, jobs: JobMap | None = None) -> None:
        self.jobs = jobs or JobMap()
        self.asked: list[tuple[int, tuple[GpuIdentity, ...], dict[str, frozenset[int] | None]]] = []
        self.told: list[tuple[dict[int, frozenset[int]], frozenset[int]]] = []

    def update(
        self,
        now_us: int,
        gpus: Sequence[GpuIdentity],
        pids: Mapping[str, frozenset[int] | None],
        host_pids: Mapping[int, frozenset[int]],
        suspended: frozenset[int],
    ) -> JobMap:
        self.asked.append((now_us, tuple(gpus), dict(pids)))
        self.told.append((dict(host_pids), suspended))
        return self.jobs


class ListSink:
    """A sink that keeps what it gets, or fails."""

    def __init__(self, name: str = "list", failure: Exception | None = None) -> None:
        self.name = name
        self.failure = failure
        self.seen: list[Observation] = []

    def accept(self, seen: Observation) -> None:
        if self.failure:
            raise self.failure
        self.seen.append(seen)


def a_gpu(number: int, **more: Any) -> GpuIdentity:
    """Return the identity of the GPU with this index, minor 10 more."""
    values = {"uuid": f"GPU-{number}", "index": number, "minor": 10 + number, "mem_total_b": 1 << 30, **more}
    return GpuIdentity(**values)


def a_scan(*readings: GpuReading, source: str = "nvml") -> GpuScan:
    """Return a scan of GPU-0, GPU-1, ... with these readings."""
    gpus = tuple(a_gpu(int(reading.uuid[4:])) for reading in readings)
    return GpuScan(source, gpus, {reading.uuid: reading for reading in readings}, 1)

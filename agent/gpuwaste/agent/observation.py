"""The agent's knowledge at one instant, and the samples made from it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gpuwaste.agent.accumulator import SUSPENDED
from gpuwaste.agent.readings import GpuAllocation, GpuIdentity, GpuReading, HostUse, JobMap, PackageReading
from gpuwaste.core.parts import Part
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample, UnknownReason


@dataclass(frozen=True, slots=True)
class Observation:
    """One tick. `samples` has one for each free GPU, and one for each holding of the others."""

    t_utc_us: int
    mono_us: int
    gpus: tuple[GpuIdentity, ...] = ()
    readings: Mapping[str, GpuReading] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)  # collector by GPU uuid
    jobs: JobMap = field(default_factory=JobMap)
    host: Mapping[int, HostUse] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    xids: Mapping[tuple[str, int], int] = field(default_factory=dict)
    packages: PackageReading | None = None


class Sink(Protocol):
    """Where observations go. An error of a sink concerns no other sink, and it gets the next observation."""

    name: str

    def accept(self, seen: Observation) -> None:
        """Process one observation. Called from the sampling thread only."""
        ...


class SinkPart(Part, ABC):
    """A part of the agent that is a sink."""

    name: str

    @abstractmethod
    def accept(self, seen: Observation) -> None:
        """Process one observation. Called from the sampling thread only."""


class DeviceMapper(Protocol):
    """The device map's interface for the sampler."""

    def update(
        self,
        now_us: int,
        gpus: Sequence[GpuIdentity],
        pids: Mapping[str, frozenset[int] | None],
        host_pids: Mapping[int, frozenset[int]],
        suspended: frozenset[int],
    ) -> JobMap:
        """Return who holds which GPU now, from local facts only.

        `pids` are the compute processes by GPU uuid; `host_pids` and `suspended` are from the host collector, by job.
        """
        ...


def make_samples(seen: Observation) -> Iterator[Sample]:
    """Yield the samples of an observation: GPUs in their order, then those that only Slurm has."""
    by_gpu: dict[str, list[GpuAllocation]] = {}
    for holding in seen.jobs.holdings:
        by_gpu.setdefault(holding.gpu_uuid, []).append(holding)
    for gpu in seen.gpus:
        holders: Sequence[GpuAllocation | None] = by_gpu.pop(gpu.uuid, []) or [None]
        yield from (_sample(seen, gpu, holding) for holding in holders)
    for uuid, holdings in by_gpu.items():
        for holding in holdings:
            yield _sample(seen, GpuIdentity(uuid=uuid, index=-1, minor=None), holding, UnknownReason.NOT_IN_NVML)


def _sample(
    seen: Observation, gpu: GpuIdentity, holding: GpuAllocation | None, missing: UnknownReason = UnknownReason.GAP
) -> Sample:
    reading = seen.readings.get(gpu.uuid) or GpuReading(gpu.uuid, reason=missing)
    return Sample(
        t_utc_us=seen.t_utc_us,
        mono_us=seen.mono_us,
        gpu_uuid=gpu.uuid,
        instance=gpu.instance,
        source=seen.sources.get(gpu.uuid, ""),
        util_pct=reading.util_pct,
        mem_used_b=reading.mem_used_b,
        mem_total_b=reading.mem_total_b if reading.mem_total_b is not None else gpu.mem_total_b,
        power_mw=reading.power_mw,
        power_limit_mw=gpu.power_limit_mw,
        energy_mj=reading.energy_mj,
        sm_ratio=reading.sm_ratio,
        procs=_procs(seen, reading, holding),
        job_id=holding.job_id if holding else None,
        run_key=holding.run_key if holding else None,
        map_source=holding.map_source if holding else MapSource.NONE,
        confidence=_confidence(seen, gpu, holding),
        reason=_reason(seen, reading, holding),
    )


def _procs(seen: Observation, reading: GpuReading, holding: GpuAllocation | None) -> int | None:
    """Count the GPU's compute processes that belong to the job; None if the job's processes are unknown."""
    if holding is None or reading.pids is None:
        return None
    if not reading.pids:
        return 0
    use = seen.host.get(holding.job_id)
    return None if use is None else len(reading.pids & use.pids)


def _confidence(seen: Observation, gpu: GpuIdentity, holding: GpuAllocation | None) -> Confidence:
    if holding is not None:
        return holding.confidence
    return Confidence.CONFLICT if gpu.uuid in seen.jobs.unmapped else Confidence.NONE


def _reason(seen: Observation, reading: GpuReading, holding: GpuAllocation | None) -> str:
    """Return why there is no attribution, else why there is no utilization."""
    if holding is not None and holding.suspended:
        return SUSPENDED
    if holding is not None and holding.conflict:
        return holding.conflict
    if holding is None and reading.uuid in seen.jobs.unmapped:
        return seen.jobs.unmapped[reading.uuid]
    if reading.util_pct is None:
        return reading.reason or UnknownReason.NOT_SUPPORTED
    return ""

"""Samples for the tests of the node store, and the store itself."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.unit.agent.fakes import START_US

from gpuwaste.agent.node_store import NodeStore
from gpuwaste.agent.segment import Segment
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample
from gpuwaste.slurm.run_key import RunKey

BASE = Sample(
    t_utc_us=START_US,
    mono_us=17,
    gpu_uuid="GPU-a",
    instance="",
    source="nvml",
    util_pct=12.5,
    mem_used_b=123 << 10,
    mem_total_b=456,
    power_mw=70_000,
    power_limit_mw=400_000,
    energy_mj=10**12,
    sm_ratio=0.25,
    procs=1,
    job_id=9,
    run_key=RunKey("gw", 9, 1_700_000_000),
    map_source=MapSource.CGROUP,
    confidence=Confidence.SINGLE,
)
EMPTY = Sample(START_US, 17, "GPU-b", "1/0", "nvml", reason="mig")


def a_store(path: Path, days: int = 14, size_b: int = 1 << 30) -> NodeStore:
    return NodeStore(path, days, size_b)


def a_segment(folder: Path, number: int, ticks: Sequence[Sequence[Sample]], day: str = "2026-01-01") -> Path:
    """Write a finished segment and return its file."""
    segment = Segment(folder, number, day)
    for tick in ticks:
        segment.append(tick)
    segment.close()
    return segment.path


def at(sample: Sample, number: int, step_us: int = 10_000_000) -> Sample:
    """Return the sample so many ticks later, its energy counter further on."""
    energy = None if sample.energy_mj is None else sample.energy_mj + 777 * number
    move = number * step_us
    return replace(sample, t_utc_us=sample.t_utc_us + move, mono_us=sample.mono_us + move, energy_mj=energy)

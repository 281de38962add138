"""The last observation and its counters, for readers between two ticks."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from gpuwaste.agent.accumulator import SUSPENDED
from gpuwaste.agent.hour_aggregator import GAP_INTERVALS
from gpuwaste.agent.observation import Observation, SinkPart
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Parts
from gpuwaste.ledger.gpu_sample import Confidence, Sample, UnknownReason

IDLE: Final = "idle"
ACTIVE: Final = "active"
UNKNOWN: Final = "unknown"
_GAP_US: Final = 25_000_000


@dataclass(frozen=True, slots=True)
class SnapshotView:
    """One consistent, immutable view."""

    seen: Observation | None = None
    samples_total: int = 0
    unattributed: Mapping[str, int] = field(default_factory=dict)  # samples by reason, since the start
    held_us: Mapping[tuple[str, str], int] = field(default_factory=dict)  # by GPU and use, since the start


class LatestSnapshot(SinkPart):
    """A sink that keeps the last observation; `view` is replaced, never changed, so that readers need no lock."""

    name = "snapshot"

    def __init__(self, gap_us: int = _GAP_US) -> None:
        """Set up; the use is unknown between two observations that are further apart than `gap_us`."""
        self.view = SnapshotView()
        self._gap_us = gap_us
        self._total = 0
        self._unattributed: Counter[str] = Counter()
        self._held_us: Counter[tuple[str, str]] = Counter()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an agent."""
        return cls(int(parts.get(Config).agent.interval_s * GAP_INTERVALS * 1e6))

    def accept(self, seen: Observation) -> None:
        """Keep the observation and count its samples."""
        self._total += len(seen.samples)
        for sample in seen.samples:
            if sample.confidence is Confidence.CONFLICT:
                self._unattributed[sample.reason or UnknownReason.CONFLICT] += 1
        self._count_held(seen)
        self.view = SnapshotView(seen, self._total, dict(self._unattributed), dict(self._held_us))

    def _count_held(self, seen: Observation) -> None:
        """Add the time since the observation before to each GPU that a job holds; a shared GPU counts once."""
        before = self.view.seen
        if before is None:
            return
        passed_us = seen.mono_us - before.mono_us
        uses = {sample.gpu_uuid: _use(sample) for sample in reversed(seen.samples) if sample.job_id is not None}
        for uuid, use in uses.items():
            self._held_us[uuid, use if passed_us <= self._gap_us else UNKNOWN] += passed_us


def _use(sample: Sample) -> str:
    """Return the use that the time of a sample counts as."""
    if sample.reason == SUSPENDED:
        return SUSPENDED
    if sample.confidence is Confidence.CONFLICT or sample.util_pct is None:
        return UNKNOWN
    return ACTIVE if sample.util_pct > 0 else IDLE

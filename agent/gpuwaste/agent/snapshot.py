"""The last observation and the counters beside it, for whoever asks between two ticks."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuwaste.agent.observation import Observation
from gpuwaste.core.sample import Confidence


@dataclass(frozen=True, slots=True)
class View:
    """One consistent view: nothing in it changes."""

    seen: Observation | None = None
    samples_total: int = 0
    unattributed: Mapping[str, int] = field(default_factory=dict)  # samples by reason, since the start


class Snapshot:
    """A sink that keeps the last observation; `view` is replaced whole, so that readers need no lock."""

    name = "snapshot"

    def __init__(self) -> None:
        self.view = View()
        self._total = 0
        self._unattributed: Counter[str] = Counter()

    def accept(self, seen: Observation) -> None:
        """Keep the observation and count its samples."""
        self._total += len(seen.samples)
        for sample in seen.samples:
            if sample.confidence is Confidence.CONFLICT:
                self._unattributed[sample.reason or "conflict"] += 1
        self.view = View(seen, self._total, dict(self._unattributed))

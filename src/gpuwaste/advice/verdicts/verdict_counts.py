"""VerdictCounts: counts the verdicts that are kept, now and then, in the importer's loop."""

from collections.abc import Iterator, Mapping
from typing import Final, Self

from prometheus_client.core import GaugeMetricFamily, Metric

from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.clock import Clock
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Imported

EVERY_S: Final = 600.0


class VerdictCounts(Part):
    """One thread calls `step`; `counts` may be read by any."""

    def __init__(self, store: VerdictStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next_us = 0
        self.counts: dict[tuple[str, bool], int] = {}  # by action and whether a run has told the token

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        part = cls(parts.get(VerdictStore), parts.get(HostPorts).clock)
        parts.get(Bus).subscribe(Imported, lambda _: part.step())
        return part

    def metrics(self) -> Iterator[Metric]:
        """Yield how many verdicts are kept."""
        return kept_families(self.counts)

    def step(self) -> None:
        """Count if it is time. Raises StoreError."""
        if self._clock.mono_us() < self._next_us:
            return
        self.counts = self._store.counts()
        self._next_us = self._clock.mono_us() + int(EVERY_S * 1e6)


def kept_families(counts: Mapping[tuple[str, bool], int]) -> Iterator[Metric]:
    """Yield the verdicts of the store."""
    kept = GaugeMetricFamily(
        "gpuwaste_hub_kept_verdicts",
        "Verdicts in the store, by action and by whether a run with their token was found.",
        labels=["action", "joined"],
    )
    for (action, joined), count in sorted(counts.items()):
        kept.add_metric([action, "true" if joined else "false"], count)
    yield kept

"""InboxParts: a hub's part in the lake's inbox: it merges batches, or takes them; and the figures of either."""

from collections.abc import Iterator
from typing import Self

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Worker
from gpuwaste.hub.batch_folder import BatchFolder
from gpuwaste.hub.inbox_room import InboxRoom
from gpuwaste.hub.ingest import Ingest
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import QuarantinedRows
from gpuwaste.net.health_types import InboxHealth
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.inbox import InboxBacklog


class InboxParts(Part):
    """The BatchFolder of a hub that serves on a lake, or the InboxRoom of one that stands by; with a file neither."""

    def __init__(
        self,
        store: HubStore,
        receivers: tuple[Ingest, VerdictIngest],
        quarantined: QuarantinedRows,
        clock: Clock,
        room: InboxRoom | None = None,
    ) -> None:
        self._clock = clock
        self._room = room
        merges = store.alone and store.has_inbox
        self.folder = BatchFolder(store, receivers, clock, quarantined) if merges else None

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        receivers = parts.get(Ingest), parts.get(VerdictIngest)
        quarantined, room = parts.get(QuarantinedRows), parts.find(InboxRoom)
        return cls(parts.get(HubStore), receivers, quarantined, parts.get(HostPorts).clock, room)

    @property
    def workers(self) -> list[Worker]:
        """The threads to start."""
        return [] if self.folder is None else [self.folder.worker]

    def health(self) -> InboxHealth:
        """Return what waits; nothing for a store without an inbox."""
        found = self._waiting()
        return InboxHealth() if found is None else InboxHealth(batches=found.batches, age_s=self._age_s(found))

    def counted(self) -> Iterator[Metric]:
        """Yield what waits, and what was taken and merged."""
        found = self._waiting()
        taken = 0 if self._room is None else self._room.batches
        merged = 0 if self.folder is None else self.folder.merged
        yield from families(found, None if found is None else self._age_s(found), taken, merged)

    def _waiting(self) -> InboxBacklog | None:
        if self._room is not None:
            return self._room.waiting
        try:
            return None if self.folder is None else self.folder.waiting()
        except StoreError:
            return None

    def _age_s(self, found: InboxBacklog) -> float | None:
        return None if found.oldest_us is None else max(0.0, (self._clock.utc_us() - found.oldest_us) / 1e6)


def families(found: InboxBacklog | None, age_s: float | None, taken: int, merged: int) -> Iterator[Metric]:
    """Yield what waits, where that is known, and how many batches a hub took and merged."""
    batches = GaugeMetricFamily(
        "gpuwaste_hub_inbox_batches",
        "Batches that standby hubs have accepted and the active hub has not merged.",
    )
    age = GaugeMetricFamily("gpuwaste_hub_inbox_age_seconds", "Age of the oldest of them, 0 for none.")
    if found is not None:
        batches.add_metric([], found.batches)
        age.add_metric([], age_s or 0)
    yield batches
    yield age
    yield CounterMetricFamily(
        "gpuwaste_hub_inbox_taken_batches",
        "Batches that this hub accepted as a standby.",
        value=taken,
    )
    yield CounterMetricFamily(
        "gpuwaste_hub_inbox_merged_batches",
        "Batches of other hubs that this hub merged.",
        value=merged,
    )

"""The sinks that keep: raw samples into the node store, hours into the outbox."""

from collections.abc import Sequence
from typing import Protocol

from gpuwaste.agent.node_store import NodeStore
from gpuwaste.agent.observation import Observation
from gpuwaste.core.hour import AllocationHour


class HourKeeper(Protocol):
    """What the sink asks of the HourBook."""

    def take(self, seen: Observation) -> list[AllocationHour]:
        """Take in one observation and return the rows that have to leave now."""
        ...


class RowStore(Protocol):
    """What the sink asks of the outbox."""

    def put(self, rows: Sequence[AllocationHour]) -> int:
        """Store rows durably, all or none."""
        ...


class RawSink:
    """Keeps every sample in the node store."""

    name = "raw samples"

    def __init__(self, store: NodeStore) -> None:
        self._store = store

    def accept(self, seen: Observation) -> None:
        """Write the samples. Raises StoreError."""
        self._store.append(seen.samples)

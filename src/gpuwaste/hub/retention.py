"""TableRetention: deletes the rows of the store that are older than their table's retention, on a thread of its own."""

from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.units import HOUR_S
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.row_deletion import delete_old, retentions

_REMOVED: Final = log_event.info("old-rows-deleted: {rows} rows of {table} older than {key} = {days} deleted")
_FAILED: Final = log_event.warning(
    "old-rows-not-deleted: cannot delete old rows, retry in an hour: {error}",
    "The store or its disk cannot be written. Until then rows with user names are kept longer than configured.",
)


class TableRetention(Part):
    """`worker` runs it; rows are deleted whether their feature is still used or not."""

    late = True

    def __init__(self, store: HubStore, clock: Clock, config: Config) -> None:
        self._store = store
        self._clock = clock
        self._days: dict[str, int] = {}
        self.use(config)
        self._trouble = RepeatSuppressor()
        self.worker = Worker("retention", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HubStore), parts.get(HostPorts).clock, parts.get(Config))

    @property
    def reloads(self) -> Reloads:
        """How long rows are kept."""
        return {("hub.verdict_days",): self.use}

    def use(self, config: Config) -> None:
        """Use the retention of this configuration from now on."""
        for _, kept in retentions():
            section, key = kept.days.split(".")
            self._days[kept.days] = getattr(getattr(config, section), key)

    def step(self) -> None:
        """Delete what is too old. Raises StoreError."""
        keys = {table: kept.days for table, kept in retentions()}
        for table, rows in delete_old(self._store, self._clock, self._days).items():
            _REMOVED.log(table=table, rows=rows, key=keys[table], days=self._days[keys[table]])

    def _turn(self) -> float:
        try:
            self.step()
        except StoreError as error:
            if self._trouble.news(str(error)):
                _FAILED.log(error=error)
        else:
            self._trouble.over()
        return HOUR_S

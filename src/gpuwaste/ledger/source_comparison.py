"""SourceComparison: agents checked against jobstats by the mean utilization of the runs that both have."""

from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.net.health_types import FAR_PCT, SourcesHealth
from gpuwaste.store.hub.hub_store import HubStore

EVERY_S: Final = float(HOUR_S)
WINDOW_S: Final = 7 * DAY_S
_FAILED: Final = log_event.warning(
    "sources-not-compared: cannot compare agents with jobstats: {error}", "The hub tries again in an hour."
)


class SourceComparison(Part):
    """`worker` compares every hour; any thread may read the result."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._found = SourcesHealth()
        self.worker = Worker("sources", self.step, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HubStore), parts.get(HostPorts).clock)

    def step(self) -> float:
        """Compare the runs that began within the window; returns the seconds to wait. Raises no error of the store."""
        now, rule = self._clock.utc_s(), self._store.under_use
        window = {"from_hour": now - WINDOW_S, "to_hour": now, "active_pct": rule.below_pct}
        try:
            with self._store.reader() as db:
                (row,) = db.rows("sources_compared", {**window, "min_coverage": rule.min_coverage, "far_pct": FAR_PCT})
        except GpuwasteError as error:
            _FAILED.log(error=error)
            return EVERY_S
        self._found = SourcesHealth(**row)
        return EVERY_S

    def health(self) -> SourcesHealth:
        """Return its section of /v1/health."""
        return self._found

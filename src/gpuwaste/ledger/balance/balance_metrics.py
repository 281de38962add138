"""gpuwaste_hub_gpu_seconds_total: the GPU-seconds of the machine by class, of hours that have settled.

Accounting tells late who waited, so an hour is added some hours after its end, once; a later correction of the hour is
not added. The counter begins at 0 with the hub.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, Metric

from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.balance.allocated import window_use
from gpuwaste.ledger.balance.balance_store import stored_hours
from gpuwaste.ledger.balance.types import BalanceClass
from gpuwaste.ledger.balance.window import WindowBalance, add_window
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.database import Database

SETTLED_S: Final = 2 * HOUR_S
_MOST_HOURS: Final = 48  # counted at a time; a hub that was away for longer leaves out the hours before
_IDLE: Final = {"short": "idle", "unexplained": "idle"}
_OF_USE: Final = ("high", "moderate", "low", "idle", "exempt", "suspended", "unknown")
LABELS: Final = (*_OF_USE, *(of.value for of in BalanceClass if of is not BalanceClass.ALLOCATED))
_FAMILY: Final = (
    "gpuwaste_hub_gpu_seconds",
    "GPU-seconds of the machine by class, of hours that ended two hours ago and more; they add up to all of its GPUs.",
)


class BalanceCounter:
    """Adds up settled hours. One thread calls `count`; any may call `metrics`."""

    def __init__(self) -> None:
        self._until: int | None = None
        self._seconds: Mapping[str, float] = dict.fromkeys(LABELS, 0.0)

    def count(self, db: Database, clusters: Collection[str], settings: LedgerSettings, now: int) -> None:
        """Add the hours that have settled since the last call and are stored. Raises StoreError."""
        settled = (now - SETTLED_S) // HOUR_S * HOUR_S
        stored = [stored_hours(db, cluster).until for cluster in clusters]
        until = min([settled, *(hour for hour in stored if hour)])
        if self._until is None or until - self._until > _MOST_HOURS * HOUR_S:
            self._until = until
        for hour in range(self._until, until, HOUR_S):
            found = Counter(self._seconds)
            for cluster in clusters:
                found.update(_of_hour(db, cluster, hour, settings, now))
            self._seconds, self._until = found, hour + HOUR_S

    def metrics(self) -> Iterator[Metric]:
        """Yield the family."""
        family = CounterMetricFamily(*_FAMILY, labels=["class"])
        for label, seconds in self._seconds.items():
            family.add_metric([label], seconds)
        yield family


def _of_hour(db: Database, cluster: str, hour: int, settings: LedgerSettings, now: int) -> Counter[str]:
    """Return the GPU-seconds of a stored hour by label."""
    window = WindowBalance(hour, hour + HOUR_S, now, HOUR_S)
    add_window(db, cluster, window)
    by_class = window.by_class()
    found = Counter({of.value: gpu_s for of, gpu_s in by_class.items() if of is not BalanceClass.ALLOCATED})
    use = window_use(db, (cluster,), (hour, hour + HOUR_S), settings, now)
    for name, ms in use.bounded(by_class[BalanceClass.ALLOCATED] * 1000).uses.items():
        found[_IDLE.get(name, name)] += ms / 1000  # type: ignore[assignment]  # seconds with a fraction
    return found

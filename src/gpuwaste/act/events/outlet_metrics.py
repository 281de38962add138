"""How outlets stand, as metrics."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpuwaste.act.events.outlet_sender import SenderState
from gpuwaste.jobs.events.event_store import Behind


@dataclass(frozen=True, slots=True)
class OutletStanding:
    """An outlet by its name: what its sender has done, and what waits for it."""

    name: str
    state: SenderState
    behind: Behind


def families(standings: Iterable[OutletStanding], now: float) -> Iterator[Metric]:
    """Yield the families; `now` is UTC seconds."""
    labels = ["outlet"]
    lag = GaugeMetricFamily("gpuwaste_hub_outlet_lag_events", "Events that wait for an outlet.", labels=labels)
    age = GaugeMetricFamily(
        "gpuwaste_hub_outlet_lag_seconds", "Time since the oldest event that waits for an outlet.", labels=labels
    )
    good = GaugeMetricFamily("gpuwaste_hub_outlet_up", "1 while an outlet takes events.", labels=labels)
    given = CounterMetricFamily("gpuwaste_hub_outlet_events", "Events handed over.", labels=labels)
    dead = CounterMetricFamily(
        "gpuwaste_hub_outlet_refused_events", "Events that a receiver will never take.", labels=labels
    )
    for one in standings:
        first = one.behind.first_utc
        lag.add_metric([one.name], one.behind.events)
        age.add_metric([one.name], 0.0 if first is None else max(0.0, now - first))
        good.add_metric([one.name], float(one.state.failures == 0))
        given.add_metric([one.name], one.state.delivered)
        dead.add_metric([one.name], one.state.dead)
    yield from (lag, age, good, given, dead)

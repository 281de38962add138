"""How inlets stand, as metrics."""

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpuwaste.act.events.intake import RESULTS, InletState


def families(states: Mapping[str, InletState], unknown: int) -> Iterator[Metric]:
    """Yield the families of inlets by their names; `unknown` requests named no inlet."""
    up = GaugeMetricFamily("gpuwaste_hub_inlet_up", "1 while an inlet gets events.", labels=["inlet"])
    came = CounterMetricFamily(
        "gpuwaste_hub_inlet_events",
        "Events that came: accepted, repeated (known by their id) or quarantined.",
        labels=["inlet", "result"],
    )
    refused = CounterMetricFamily(
        "gpuwaste_hub_inlet_refused_requests",
        "Refused requests to inlets: unsigned, clock, signature, replay, size, rate, or unknown (no such inlet).",
        labels=["inlet", "reason"],
    )
    refused.add_metric(["", "unknown"], unknown)
    for name, state in states.items():
        up.add_metric([name], float(state.failures == 0))
        for result in RESULTS:
            came.add_metric([name, result], state.events[result])
        for reason, count in sorted(state.refused.items()):
            refused.add_metric([name, reason], count)
    yield from (up, came, refused)

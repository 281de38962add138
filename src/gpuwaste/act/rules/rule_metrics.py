"""The figures of rules for /metrics."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric


@dataclass(slots=True)
class RuleFigures:
    """How the last pass went, for /metrics and the list of rules; `left` counts why subjects were left alone."""

    passed_utc: int = 0
    seconds: float = 0.0
    matched: dict[str, int] = field(default_factory=dict)
    left: dict[str, dict[str, int]] = field(default_factory=dict)
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)


def families(figures: RuleFigures, rules: int, refused: int) -> Iterator[Metric]:
    """Yield the families; `refused` counts files with an error."""
    yield GaugeMetricFamily("gpuwaste_hub_rules", "Rules in use.", rules)
    yield GaugeMetricFamily(
        "gpuwaste_hub_rules_refused", "Files of rules that are not used: they have errors.", refused
    )
    yield GaugeMetricFamily("gpuwaste_hub_rules_pass_seconds", "Duration of the last pass of rules.", figures.seconds)
    yield GaugeMetricFamily(
        "gpuwaste_hub_rules_passed_timestamp_seconds", "When rules were evaluated last.", figures.passed_utc
    )
    steps = CounterMetricFamily(
        "gpuwaste_hub_rule_steps", "Steps of rules since the start of the hub.", labels=["rule", "outcome"]
    )
    for (rule, outcome), count in sorted(figures.steps.items()):
        steps.add_metric([rule, outcome], count)
    yield steps

"""What a PromQL expression names, as far as the rules and boards need it told."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tools.reference.metrics import Row, all_rows

TARGET_LABELS: Final = frozenset({"job", "instance", "cluster"})  # Prometheus' own, and the scrape configuration's
OVER_COUNTERS: Final = frozenset({"rate", "increase", "irate"})
_METRIC: Final = re.compile(r"(?<![\w:$\"/])((?:\w+:)?gpuwaste_\w+(?::\w+)?)(\{[^}]*\})?(\[\w+\])?")
_LABEL: Final = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")


class Use(NamedTuple):
    """One use of a metric: its name, the labels that it is chosen by, and the function right before it."""

    name: str
    labels: frozenset[str]
    function: str


class Known(NamedTuple):
    """A series that is served or recorded."""

    kind: str
    labels: frozenset[str]


def uses(expr: str) -> Iterator[Use]:
    """Yield each metric of ours that an expression names."""
    for match in _METRIC.finditer(expr):
        function = re.search(r"(\w+)\s*\($", expr[: match.start()])
        labels = frozenset(_LABEL.findall(match[2] or ""))
        yield Use(match[1], labels, function[1] if function and match[3] else "")


def served() -> dict[str, Known]:
    """Return every series that the programs serve, histograms as the three that they are."""
    found = {}
    for row in all_rows():
        for name, kind in _series(row):
            labels = frozenset(row.labels) | TARGET_LABELS | ({"le"} if name.endswith("_bucket") else frozenset())
            found[name] = Known(kind, labels)
    return found


def faults(expr: str, known: dict[str, Known]) -> list[str]:
    """Return what is wrong with the metrics of an expression: unknown, a label that it lacks, a gauge's rate."""
    wrong = []
    for use in uses(expr):
        series = known.get(use.name)
        if series is None:
            wrong.append(f"{use.name}: nobody serves it")
            continue
        wrong += [f"{use.name} has no label {label}" for label in sorted(use.labels - series.labels)]
        if (use.function in OVER_COUNTERS) != (series.kind == "counter"):
            wrong.append(f"{use.name} is a {series.kind}, and stands in {use.function or 'no rate'}")
    return wrong


def _series(row: Row) -> list[tuple[str, str]]:
    if row.kind != "histogram":
        return [(row.name, row.kind)]
    return [(f"{row.name}_{part}", "counter") for part in ("bucket", "count", "sum")]

"""Priority against wait: accounting has priority instead of fair share."""

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import Any, Final

from gpuwaste.show.chart import Axis, Chart, Role
from gpuwaste.show.view_document import Column, ViewFacts
from gpuwaste.views.charting import (
    PER_DECADE,
    ROUNDED_UP,
    RUNS_NOTE,
    binned,
    columns_needed,
    decade_edges,
    without_waits,
)
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Priority and waits"
QUESTION: Final = "How long do jobs of high and of low priority wait?"
SENTENCES: Final = (
    (
        "Half of the jobs with a priority below {low_priority} waited {low_p50_s} or less; half of those with "
        "{high_priority} or more waited {high_p50_s} or less."
    ),
)
_COLUMNS: Final = (
    Column(name="from", title="Priority from"),
    Column(name="below", title="Below"),
    Column(name="runs", title="Jobs", unit="jobs"),
    Column(name="p50_s", title="Median wait", unit="s"),
    Column(name="p95_s", title="95th percentile", unit="s"),
)
_PART: Final = 0.2
_MAIN: Final[Role] = "main"
_NOTES: Final = (
    RUNS_NOTE,
    (
        "Priority is the last value in accounting. It includes fair share, age, size, partition and QOS, by the "
        "weights of the site; a long wait raises it. Accounting does not have the fair share by itself."
    ),
    f"Waits are from submission to start, rounded up by at most {ROUNDED_UP}.",
)


def answer(asking: ViewQuery) -> Answer:
    """Query the bins; the lowest and the highest bins with a fifth of the jobs are compared."""
    facts = ViewFacts("priority")
    if unknown := without_waits(asking):
        return Answer(facts, _COLUMNS, [], [], [], nothing=unknown)
    rows = asking.rows("priority")
    if not rows:
        return Answer(facts, _COLUMNS, [], [], [], nothing="Accounting has no priority of these jobs.")
    classes: dict[int, Counter[int]] = {}
    for row in rows:
        classes.setdefault(row["x"], Counter())[row["y"]] += row["runs"]
    facts.add("runs", sum(own.total() for own in classes.values()), "jobs", "jobs with a priority that started")
    if len(classes) > 1:
        _add_ends(facts, classes)
    table = [
        [_edge(x), _edge(x + 1), own.total(), *(_quantile(own, share) for share in (0.5, 0.95))]
        for x, own in sorted(classes.items())
    ]
    nothing = "" if len(classes) > 1 else "All jobs that started in this window had about the same priority."
    return Answer(facts, _COLUMNS, table, [_chart(rows)], _NOTES, nothing=nothing)


def _add_ends(facts: ViewFacts, classes: dict[int, Counter[int]]) -> None:
    """Add the waits of the lowest and of the highest fifth, or more if one bin has more; they do not overlap."""
    order = sorted(classes)
    whole = sum(own.total() for own in classes.values())
    heights = list(accumulate(classes[x].total() for x in order))
    first = min(bisect_left(heights, _PART * whole), len(order) - 2)
    from_above = list(accumulate(classes[x].total() for x in reversed(order)))
    last = max(len(order) - 1 - bisect_left(from_above, _PART * whole), first + 1)
    for name, own, edge, text in (
        ("low", order[: first + 1], _edge(order[first] + 1), "the lowest priorities end below this"),
        ("high", order[last:], _edge(order[last]), "the highest priorities begin here"),
    ):
        waits: Counter[int] = sum((classes[x] for x in own), Counter())
        facts.add(f"{name}_priority", edge, "", text)
        facts.add(f"{name}_p50_s", _quantile(waits, 0.5), "s", f"median wait of the jobs with the {name}est priorities")


def _quantile(waits: Counter[int], share: float) -> float:
    """Return the upper edge of the bin of a quantile; the bin -1 is a wait of 0."""
    order = sorted(waits)
    place = order[bisect_left(list(accumulate(waits[y] for y in order)), share * waits.total())]
    return 0.0 if place < 0 else round(10 ** ((place + 1) / PER_DECADE), 1)


def _edge(x: int) -> int:
    """Return the first whole priority of a bin."""
    return -int(-(10 ** (x / PER_DECADE)) // 1) if x > 0 else 0


def _chart(rows: list[dict[str, Any]]) -> Chart:
    edges = [decade_edges(columns_needed(max(row[of] for row in rows))) for of in ("x", "y")]
    cells = (("jobs", _MAIN, row["x"], row["y"], row["runs"]) for row in rows)
    axes = Axis(title="Priority", scale="log"), Axis(title="Wait", unit="s", scale="log")
    return binned("Priority against wait", axes, cells, (edges[0], edges[1]))

"""Where the GPU-hours went: the month in which the window ends beside the month before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.balance.allocated import use_of
from gpuwaste.ledger.judged_runs import judged_runs
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.ledger.tally import Tally
from gpuwaste.show.chart import Bars, Role, Series
from gpuwaste.show.view_document import Cell, Column, ViewFacts
from gpuwaste.views.charting import gpus_note, sideways
from gpuwaste.views.ranking import OVERVIEW
from gpuwaste.views.view_query import Answer, ViewQuery, Window

TITLE: Final = "Where the GPU-hours went"
QUESTION: Final = "Where did the GPU-hours go, this month and the month before?"
SENTENCES: Final = (
    (
        "{month}: {wasted_share} of the {held_hours+} of jobs were wasted; {before}: {before_wasted_share} of the "
        "{before_held_hours}."
    ),
    "{only_month}: {wasted_share} of the {held_hours+} of jobs were wasted.",
    "{used_share} of the GPU-hours had high or moderate utilization, {low_share} of them low utilization.",
    "{exempt_share+} of the GPU-hours are exempt: waste with a known reason.",
    "{unknown_share+} of the GPU-hours are unknown.",
    "Jobs were suspended in {suspended_share+} of the GPU-hours.",
)
_KINDS: Final[Mapping[str, tuple[str, Role, str]]] = {
    "used": ("used well", "high", "share of the GPU-hours with high or moderate utilization"),
    "low": ("low utilization", "low", "share of the GPU-hours with low utilization"),
    "short": ("idle under a minute", "moderate", "share of the GPU-hours that was idle for less than a minute"),
    "unexplained": ("wasted", "idle", "share of the GPU-hours that was wasted without a known reason"),
    "exempt": ("wasted, exempt", "other", "share of the GPU-hours that was wasted with a known reason"),
    "suspended": ("suspended", "suspended", "share of the GPU-hours in which jobs were suspended"),
    "unknown": ("unknown", "unknown", "unknown GPU-hours"),
}
"""What a GPU-hour of a job is counted as, in the order of the chart: name, role and meaning of its share."""
_COLUMNS: Final = (
    Column(name="month", title="Month"),
    Column(name="held_hours", title="Held", unit="GPU-hours"),
    Column(name="wasted_share", title="Wasted share", unit="share"),
    *(Column(name=f"{kind}_hours", title=of[0].capitalize(), unit="GPU-hours") for kind, of in _KINDS.items()),
)
_NOTES: Final = (
    "Months are calendar months, wherever the window starts; the last one ends with the window.",
    "Used well is high or moderate utilization. Exempt is waste with a known reason, such as a debugging session.",
    "GPU-hours that no job held do not count.",
)
_MS_H: Final = HOUR_S * 1000
_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month, or its part until the window ends; `hours` are the GPU-hours by kind."""

    name: str
    hours: Mapping[str, float]

    @property
    def label(self) -> str:
        """The name with three letters of the month, for a chart: Nov 2026 so far."""
        month, rest = self.name.split(" ", 1)
        return f"{month[:3]} {rest}"

    @property
    def held(self) -> float:
        """All GPU-hours that jobs held."""
        return sum(self.hours.values())

    @property
    def wasted(self) -> float:
        """The wasted GPU-hours, the exempt ones too, as in view waste."""
        return self.hours["unexplained"] + self.hours["exempt"]


def answer(asking: ViewQuery) -> Answer:
    """Query the ledger for both months, where agents report."""
    facts = ViewFacts("samples_kept")
    if not asking.rows("samples_kept")[0]["seen"]:
        reasons = [*gpus_note(asking.rows("held_by_account")), "The store has no samples of GPUs: waste is unknown."]
        return Answer(facts, _COLUMNS, [], [], [], nothing=reasons[0])
    this, before = (Month(name, _hours(asking, edges)) for name, edges in months(asking.window))
    if not this.held:
        return Answer(facts, _COLUMNS, [], [], [], nothing=f"No job held a GPU in {this.name}.")
    facts.add("held_hours", this.held, "GPU-hours", "GPU-hours held")
    facts.share("wasted_share", this.wasted, this.held, "share of the GPU-hours that was wasted")
    for kind, (_, _, means) in _KINDS.items():
        facts.share(f"{kind}_share", this.hours[kind], this.held, means)
    facts.add("month" if before.held else "only_month", this.name, "", "month in which the window ends")
    if before.held:
        facts.add("before", before.name, "", "month before")
        facts.add("before_held_hours", before.held, "GPU-hours", "GPU-hours held in the month before")
        facts.share(
            "before_wasted_share",
            before.wasted,
            before.held,
            "share of the GPU-hours of the month before that was wasted",
        )
    shown = [month for month in (this, before) if month.held]
    table: list[list[Cell]] = [
        [one.name, one.held, one.wasted / one.held, *(one.hours[kind] for kind in _KINDS)] for one in shown
    ]
    return Answer(facts, _COLUMNS, table, [_chart(shown)], _NOTES, weight=OVERVIEW)


def months(window: Window) -> list[tuple[str, tuple[int, int]]]:
    """Return name and edges, UTC seconds, of the month in which a window ends and of the one before.

    The first one ends with the window. Months begin at midnight of the window's zone.
    """
    zone = timezone(timedelta(seconds=window.utc_offset_s)) if window.utc_offset_s else UTC
    last = datetime.fromtimestamp(max(window.end - 1, 0), zone)
    begin = last.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    before = (begin - timedelta(days=1)).replace(day=1)
    edges = (int(before.timestamp()), int(begin.timestamp()), max(window.end, 1))
    cut = edges[2] < (begin + timedelta(days=32)).replace(day=1).timestamp()
    current = window.now - window.end < DAY_S
    so_far = "" if not cut else " so far" if current else f", days 1 to {last.day}"
    return [(f"{begin:%B %Y}{so_far}", (edges[1], edges[2])), (f"{before:%B %Y}", (edges[0], edges[1]))]


def _hours(asking: ViewQuery, edges: tuple[int, int]) -> dict[str, float]:
    """Return the GPU-hours that jobs held between two times, by kind."""
    total = Tally()
    for cluster in asking.window.clusters or (None,):
        selection = Selection(*edges, clusters=None if cluster is None else (cluster,))
        with judged_runs(asking.db, selection, asking.settings, asking.window.now) as runs:
            for sums in runs.sums().values():
                total.add_tally(sums.own)
    return {kind: ms / _MS_H for kind, ms in split(total).items()}


def split(total: Tally) -> dict[str, int]:
    """Return the GPU-milliseconds of a sum by kind; the kinds add up to what was held."""
    uses = use_of(total)
    return {"used": uses.pop("high") + uses.pop("moderate"), **uses}


def _chart(shown: Sequence[Month]) -> Bars:
    series = [
        Series(name=name, role=role, y=[round(one.hours[kind] / one.held * _PERCENT, 3) for one in shown])
        for kind, (name, role, _) in _KINDS.items()
        if any(one.hours[kind] for one in shown)
    ]
    return sideways(TITLE, [one.label for one in shown], "%", series, of="Month")

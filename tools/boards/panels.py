"""A board as a list of panels: the few kinds that ours need, in Grafana's own model of a dashboard.

Every panel asks the data source of the variable `datasource`, so that a board can be imported anywhere.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Final, Self

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, StackingMode, VizOrientation
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT: Final = 8
_NUMBER_HEIGHT: Final = 4


@dataclass(frozen=True, slots=True)
class Query:
    """One expression, and what its series are called."""

    expr: str
    legend: str = ""


class Board:
    """Collects panels; `text` is the file. Panels are numbered in their order and flow from left to right."""

    def __init__(self, title: str, uid: str, about: str) -> None:
        self._next_id = 1
        self._board = (
            dashboard.Dashboard(title).uid(uid).description(about).tags(["gpuwaste"]).time("now-24h", "now")
            .refresh("1m").timezone("browser").tooltip(DashboardCursorSync.CROSSHAIR)
            .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
            .link(dashboard.DashboardLink("gpuwaste").type(DashboardLinkType.DASHBOARDS).tags(["gpuwaste"])
                  .include_vars(include_vars=True).keep_time(keep_time=True))
        )  # fmt: skip

    def choice(self, name: str, query: str, label: str, *, several: bool = True) -> Self:
        """Add a variable with a label's values; where several may be chosen, All fits series without the label too."""
        variable = (
            dashboard.QueryVariable(name).label(label).datasource(SOURCE).query(query).multi(several)
            .include_all(several).refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)
        )  # fmt: skip
        self._board.with_variable(variable.all_value(".*") if several else variable)
        return self

    def row(self, title: str) -> Self:
        """Begin a row."""
        self._board.with_row(dashboard.Row(title).id(self._id()))
        return self

    def number(
        self, title: str, unit: str, query: Query, about: str, *, bad_from: float | None = None, width: int = 4
    ) -> Self:
        """Add one large figure, orange from `bad_from` on."""
        steps = [Threshold(value=None, color="green" if bad_from is not None else "text")]
        if bad_from is not None:
            steps.append(Threshold(value=bad_from, color="orange"))
        panel = (
            stat.Panel().unit(unit).thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
            .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"])).no_value("-")
        )  # fmt: skip
        self._ask(panel, [query], instant=True)
        return self._add(panel.height(_NUMBER_HEIGHT).span(width), title, about)

    def lines(self, title: str, unit: str, *queries: Query, about: str, stacked: bool = False, width: int = 8) -> Self:
        """Add lines over time, or areas that add up."""
        legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
        panel = timeseries.Panel().unit(unit).min(0).legend(legend.show_legend(show_legend=True))
        if stacked:
            panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(60)
        self._ask(panel, queries)
        return self._add(panel.height(_HEIGHT).span(width), title, about)

    def bars(self, title: str, unit: str, query: Query, about: str, *, width: int = 8) -> Self:
        """Add one bar for each series, by its newest value."""
        panel = (
            bargauge.Panel().unit(unit).min(0).orientation(VizOrientation.HORIZONTAL)
            .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"])).no_value("-")
        )  # fmt: skip
        self._ask(panel, [query], instant=True)
        return self._add(panel.height(_HEIGHT).span(width), title, about)

    def table(self, title: str, query: Query, about: str, *, hide: tuple[str, ...] = (), width: int = 8) -> Self:
        """Add a table of the newest values with their labels."""
        hidden = dict.fromkeys(("Time", "__name__", "instance", "job", *hide), True)
        panel = table.Panel().with_transformation(
            DataTransformerConfig(id_val="organize", options={"excludeByName": hidden})
        )
        self._ask(panel, [query], instant=True, as_table=True)
        return self._add(panel.height(_HEIGHT).span(width), title, about)

    def text(self) -> str:
        """Return the file's text."""
        model = JSONEncoder(sort_keys=True).encode(self._board.build())
        return json.dumps(_without_nulls(json.loads(model)), indent=2, sort_keys=True) + "\n"

    def _add(self, panel: Any, title: str, about: str) -> Self:
        self._board.with_panel(panel.id(self._id()).title(title).description(about).datasource(SOURCE))
        return self

    @staticmethod
    def _ask(panel: Any, queries: Iterable[Query], *, instant: bool = False, as_table: bool = False) -> None:
        """Give a panel its queries, over the shown time or of its end only."""
        for letter, query in zip(ascii_uppercase, queries, strict=False):
            target = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(letter)
            target.datasource(SOURCE)
            if instant:
                target.instant()
            else:
                target.range()
            panel.with_target(target.format(PromQueryFormat.TABLE) if as_table else target)

    def _id(self) -> int:
        self._next_id += 1
        return self._next_id - 1


def _without_nulls(value: Any) -> Any:
    """Leave out what is null: Grafana then takes its defaults."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None or key == "value"}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value

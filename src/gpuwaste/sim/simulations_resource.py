"""What kept simulations found, for operators: the pages /simulations and /simulations/ID."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec import json

from gpuwaste.show.page_query import page_number
from gpuwaste.show.resource import Page, PageRequest, chart_form

if TYPE_CHECKING:
    from gpuwaste.sim.kept_simulations import KeptEntry, KeptSimulation


def _listed(asked: PageRequest) -> "Sequence[KeptEntry]":
    from gpuwaste.sim.simulation_reads import SimulationReads

    return asked.reading.get(SimulationReads).listed(asked.scope)


def _list_page(asked: PageRequest, kept: "Sequence[KeptEntry]") -> str:
    from gpuwaste.sim.simulation_page import simulations_page

    return simulations_page(kept, asked.frame)


def _one(asked: PageRequest) -> "KeptSimulation":
    from gpuwaste.sim.simulation_reads import SimulationReads

    return asked.reading.get(SimulationReads).one(asked.scope, asked.name)


def _page(asked: PageRequest, kept: "KeptSimulation") -> str:
    from gpuwaste.sim.simulation_page import simulation_page

    forms = [".json", ".csv", *map(chart_form, range(len(kept.view.charts)))]
    links = {form[1:]: f"/simulations/{kept.id}{form}" for form in forms}
    return simulation_page(kept, page_number(asked.query), replace(asked.frame, links=links))


def _json(kept: "KeptSimulation") -> str:
    return json.encode(kept.view).decode()


def _csv(kept: "KeptSimulation") -> str:
    from gpuwaste.show.view_text import view_csv

    return view_csv(kept.view)


def _charts(kept: "KeptSimulation") -> list[Callable[[], str]]:
    from gpuwaste.show.charts.draw import chart_file

    return [partial(chart_file, chart) for chart in kept.view.charts]


RESOURCES = (
    Page(path="/simulations", document=_listed, html=_list_page, long=True),
    Page(
        path="/simulations/{name}",
        document=_one,
        html=_page,
        forms={".json": _json, ".csv": _csv},
        charts=_charts,
        long=True,
    ),
)

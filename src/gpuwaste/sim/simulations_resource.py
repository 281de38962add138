"""The results of kept simulations, for operators: the pages /simulations and /simulations/ID."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from msgspec import json

from gpuwaste.show.environment import Frame, page
from gpuwaste.show.page_query import page_number
from gpuwaste.show.resource import Page, PageRequest, chart_form
from gpuwaste.show.view_page import view_body
from gpuwaste.sim.kept_simulations import KeptEntry, KeptSimulation


def _listed(asked: PageRequest) -> "Sequence[KeptEntry]":
    from gpuwaste.sim.kept_simulations import SimulationReads

    return asked.reading.get(SimulationReads).listed(asked.scope)


def _list_page(asked: PageRequest, kept: "Sequence[KeptEntry]") -> str:

    return simulations_page(kept, asked.frame)


def _one(asked: PageRequest) -> "KeptSimulation":
    from gpuwaste.sim.kept_simulations import SimulationReads

    return asked.reading.get(SimulationReads).one(asked.scope, asked.name)


def _page(asked: PageRequest, kept: "KeptSimulation") -> str:

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


def simulation_page(kept: KeptSimulation, number: int, frame: Frame) -> str:
    """Return the page of a simulation with the given page of its table."""
    body = view_body(kept.view, number, lambda other: f"/simulations/{kept.id}?page={other}#table", frame.links)
    return page("simulation", frame, view=body)


def simulations_page(entries: Sequence[KeptEntry], frame: Frame) -> str:
    """Return the list of the simulations that are kept."""
    return page("simulations", frame, entries=entries)


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

"""/simulations and /simulations/ID: what kept simulations found, for operators."""

from dataclasses import replace

from fastapi import Response
from msgspec import json
from starlette.datastructures import QueryParams

from gpuwaste.core.refusal import not_found
from gpuwaste.core.scope import Scope
from gpuwaste.hub.pages.answers import html, plain
from gpuwaste.hub.pages.question import page_number
from gpuwaste.show.charts.draw import chart_file, file_policy
from gpuwaste.show.environment import Frame
from gpuwaste.sim.kept_simulations import KeptSimulation
from gpuwaste.sim.simulation_page import simulation_page, simulations_page
from gpuwaste.sim.simulation_reads import SimulationReads
from gpuwaste.views.view_text import view_csv


class SimulationViews:
    """The pages of simulations; one also as .json, .csv and, its charts, .svg, .2.svg and so on."""

    def __init__(self, simulations: SimulationReads) -> None:
        self._simulations = simulations

    def listed(self, scope: Scope, frame: Frame) -> Response:
        """Answer with what is kept. Raises Refusal."""
        return html(simulations_page(self._simulations.listed(scope), frame))

    def one(self, scope: Scope, frame: Frame, query: QueryParams, name: str) -> Response:
        """Answer with one simulation. Raises Refusal, StoreError."""
        identity, _, form = name.partition(".")
        kept = self._simulations.one(scope, identity)
        if form == "json":
            return plain(json.encode(kept.view).decode(), "application/json")
        if form == "csv":
            return plain(view_csv(kept.view), "text/csv; charset=utf-8")
        if form:
            return _chart(kept, form)
        path = f"/simulations/{kept.id}"
        forms = ["json", "csv", *_chart_names(kept)]
        links = {form: f"{path}.{form}" for form in forms}
        return html(simulation_page(kept, page_number(query), replace(frame, links=links)))


def _chart_names(kept: KeptSimulation) -> list[str]:
    return ["svg" if index == 0 else f"{index + 1}.svg" for index in range(len(kept.view.charts))]


def _chart(kept: KeptSimulation, form: str) -> Response:
    """Answer with one chart as a file. Raises Refusal 404."""
    found = dict(zip(_chart_names(kept), kept.view.charts, strict=True))
    if form not in found:
        raise not_found()
    headers = {"Content-Security-Policy": file_policy()}
    return Response(chart_file(found[form]), headers=headers, media_type="image/svg+xml")

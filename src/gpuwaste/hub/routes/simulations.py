"""/simulations and /simulations/ID: pages of kept simulations, for operators."""

from fastapi import FastAPI, Request, Response

from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.pages.answers import Pages
from gpuwaste.hub.pages.simulations import SimulationViews


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    services = exchange.services
    pages = Pages(exchange, exchange.threads.reports)
    views = SimulationViews(services.simulations)

    @app.get("/simulations", include_in_schema=False)
    async def listed(request: Request) -> Response:
        return await pages.answer(request, views.listed)

    @app.get("/simulations/{name}", include_in_schema=False)
    async def one(request: Request, name: str) -> Response:
        return await pages.answer(request, lambda scope, frame: views.one(scope, frame, request.query_params, name))

"""/analytics and /analytics/VIEW: pages of the whole system, for operators."""

from fastapi import FastAPI, Request, Response

from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.pages.analytics import AnalyticsViews
from gpuwaste.hub.pages.answers import Pages


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    services = exchange.services
    pages = Pages(exchange, exchange.threads.reports)
    views = AnalyticsViews(services.views)

    @app.get("/analytics", include_in_schema=False)
    async def listed(request: Request) -> Response:
        return await pages.answer(request, views.listed)

    @app.get("/analytics/{name}", include_in_schema=False)
    async def view(request: Request, name: str) -> Response:
        return await pages.answer(request, lambda scope, frame: views.view(scope, frame, request.query_params, name))

"""GET /v1/health and /metrics: the hub's state, for anybody."""

from fastapi import FastAPI, Response
from starlette.concurrency import run_in_threadpool

from gpuwaste.documents.health import HealthAnswer
from gpuwaste.hub.exchange import Exchange, json_response
from gpuwaste.hub.openapi import answers
from gpuwaste.hub.refusal import LATER


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""

    @app.get("/v1/health", responses=answers(HealthAnswer))
    async def health() -> Response:
        """Return the hub's health, of one that stands by with 503; needs no credential and contains no user name."""
        found = await run_in_threadpool(exchange.services.health)
        return json_response(found, 200 if found.role == "serves" else LATER)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(
            await run_in_threadpool(exchange.services.metrics.text),
            media_type="text/plain; version=0.0.4; charset=utf-8",
        )

"""GET /v1/health and /metrics: the hub's state, for anybody."""

from fastapi import FastAPI, Response

from gpuwaste.core.refusal import LATER
from gpuwaste.core.thread_pool import MadeTogether
from gpuwaste.hub.exchange import Exchange, json_response
from gpuwaste.hub.hub_health import HubHealth
from gpuwaste.hub.hub_metrics import HubMetrics
from gpuwaste.hub.openapi import answers
from gpuwaste.net.health_types import HealthAnswer


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    get, threads = exchange.reading.get, exchange.threads
    # Lambdas: the reference of the wire is made without parts.
    health_now = MadeTogether(lambda: get(HubHealth).answer(), threads.health)
    metrics_now = MadeTogether(lambda: get(HubMetrics).text(), threads.metrics)

    @app.get("/v1/health", responses=answers(HealthAnswer))
    async def health() -> Response:
        """Return the hub's health, of a standby with 503; needs no credential and contains no user name."""
        found = await health_now.get()
        return json_response(found, 200 if found.role == "serves" else LATER)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(await metrics_now.get(), media_type="text/plain; version=0.0.4; charset=utf-8")

"""GET /v1/map: the GPUs that jobs hold on a node, for agents."""

import asyncio
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from gpuwaste.core.refusal import LATER, Refusal, not_found
from gpuwaste.hub.exchange import Exchange, json_response
from gpuwaste.hub.openapi import answers
from gpuwaste.jobs.gpu_assignments import GpuAssignments
from gpuwaste.jobs.map_types import MapAnswer


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""

    @app.get("/v1/map", responses=answers(MapAnswer))
    async def cluster_map(
        request: Request,
        node: Annotated[str, Query(min_length=1, max_length=256)],
        job: Annotated[int, Query(ge=1, lt=2**32)] | None = None,
    ) -> Response:
        """Return the GPUs that the runs on a node, or of a job, hold; for agents only."""
        if not (await exchange.scope(request)).agent:
            raise not_found()
        asked = exchange.reading.get(GpuAssignments)
        future = asked.ask_node(node) if job is None else asked.ask(node, job)
        try:
            async with asyncio.timeout(exchange.limits.map_wait_s):
                found = await asyncio.shield(asyncio.wrap_future(future))
        except TimeoutError as error:
            raise Refusal(LATER, "slurmctld has not answered yet: try again") from error
        return json_response(MapAnswer(found))

"""GET /v1/jobs/ID/curves: the samples of a job over time."""

import gzip

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from gpuwaste.documents.curve_types import JobCurves
from gpuwaste.hub.exchange import Exchange, Name, Number
from gpuwaste.hub.openapi import answers
from gpuwaste.hub.run_choice import JobQuestion
from gpuwaste.hub.turns import Turns

_MOST_AT_ONCE = 2  # of a user: each makes nodes read


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    curves, turns = exchange.services.curves, Turns(_MOST_AT_ONCE)

    @app.get("/v1/jobs/{job_id}/curves", responses=answers(JobCurves))
    async def job_curves(
        request: Request,
        job_id: str,
        *,
        owner: Name | None = None,
        cluster: Name | None = None,
        start: Number | None = None,
        node: Name | None = None,
    ) -> Response:
        """Return the samples of the newest runs of a job by node and GPU: columns of up to 2,000 values.

        Of more samples come mean, minimum and maximum. `start` picks the runs that started at this UTC second, `node`
        one node; the other parameters are those of the job.
        """
        scope = await exchange.scope(request)
        question = JobQuestion(owner, cluster, start)
        with turns.taken(scope):
            packed = await run_in_threadpool(curves.packed, scope, job_id, question, node)
            headers = {"Vary": "Accept-Encoding"}
            if "gzip" not in request.headers.get("accept-encoding", ""):
                packed = await run_in_threadpool(gzip.decompress, packed)
            else:
                headers["Content-Encoding"] = "gzip"
        return Response(packed, media_type="application/json", headers=headers)

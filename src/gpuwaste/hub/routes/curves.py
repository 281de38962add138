"""The samples of a job over time: GET /v1/jobs/ID/curves, and /jobs/ID/curves.json for the page of the job."""

import gzip

from fastapi import FastAPI, Request, Response

from gpuwaste.core.scope import Scope
from gpuwaste.hub.admission_control import PerUserLimit
from gpuwaste.hub.exchange import Exchange, Name, Number
from gpuwaste.hub.openapi import answers
from gpuwaste.hub.page_answers import Pages
from gpuwaste.ledger.curves.curve_service import Curves
from gpuwaste.ledger.curves.curve_types import JobCurves
from gpuwaste.ledger.reports.report_question import ANY, JobQuestion
from gpuwaste.show.environment import Frame
from gpuwaste.show.page_query import node_name

_MOST_AT_ONCE = 2  # of a user: each makes nodes read


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    turns = PerUserLimit(_MOST_AT_ONCE)
    pages = Pages(exchange, exchange.threads.curves, turns)

    def curves() -> Curves:
        return exchange.reading.get(Curves)

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
            return await exchange.threads.curves.run(
                scope.bounded_user, lambda: _response(request, curves().packed(scope, job_id, question, node))
            )

    @app.get("/jobs/{job_id}/curves.json", include_in_schema=False)
    async def page_curves(request: Request, job_id: str) -> Response:
        def answer(scope: Scope, _: Frame) -> Response:
            node = node_name(request.query_params) or None
            return _response(request, curves().packed(scope, job_id, ANY, node))

        return await pages.answer(request, answer)


def _response(request: Request, packed: bytes) -> Response:
    """Return the document as it is kept, or unpacked for a client that does not take gzip."""
    sent = {"Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        packed = gzip.decompress(packed)
    else:
        sent["Content-Encoding"] = "gzip"
    return Response(packed, media_type="application/json", headers=sent)

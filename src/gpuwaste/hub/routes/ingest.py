"""POST /v1/hours, /v1/verdicts: batches of agents and advisors, under admission control."""

from collections.abc import Callable

from fastapi import FastAPI, Request, Response

from gpuwaste.core.refusal import Refusal
from gpuwaste.hub.admission_control import AdmissionControl
from gpuwaste.hub.batch_receiver import LocalUid
from gpuwaste.hub.exchange import Exchange, authorization, target
from gpuwaste.hub.hub_metrics import HubMetrics
from gpuwaste.hub.ingest import Ingest
from gpuwaste.hub.models import AckAnswer
from gpuwaste.hub.openapi import answers
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.net.peers import uid_at_other_end
from gpuwaste.net.request_signing import SignedAnswer


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    get = exchange.reading.get
    gate = AdmissionControl(exchange.limits.gate, lambda: get(HubMetrics).put_off())

    async def taken(request: Request, take: Callable[[str, str, bytes, LocalUid], SignedAnswer]) -> Response:
        try:
            with gate.visit(request.state.cut_off) as visit:
                body = await exchange.body(request, visit.counted(request.stream()))
                at = target(request)
                answer = await visit.in_thread(lambda: take(authorization(request), at, body, _local_uid(request)))
        except Refusal as refusal:
            refusal.closes = True
            raise
        return Response(answer.body, media_type="application/json", headers=answer.headers)

    @app.post("/v1/hours", responses=answers(AckAnswer))
    async def hours(request: Request) -> Response:
        """Receive a batch of hour rows: NDJSON, the envelope first."""
        return await taken(request, lambda *sent: get(Ingest).take(*sent))

    @app.post("/v1/verdicts", responses=answers(AckAnswer))
    async def take_verdicts(request: Request) -> Response:
        """Receive a batch of verdicts: NDJSON, the envelope first; each id counts once."""
        return await taken(request, lambda *sent: get(VerdictIngest).take(*sent))


def _local_uid(request: Request) -> LocalUid:
    """Return a function for the uid at the other end of the connection, where that is on this host."""
    if (uid := getattr(request.state, "peer_uid", None)) is not None:
        return lambda: uid
    ends = getattr(request.state, "ends", None)
    return lambda: uid_at_other_end(ends) if ends is not None else None

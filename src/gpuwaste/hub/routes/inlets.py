"""POST /v1/inlets/NAME: events of other systems of the site."""

from fastapi import FastAPI, Request, Response

from gpuwaste.act.events.event_types import InletAnswer
from gpuwaste.act.events.inlet_parts import MAX_BODY, InletParts
from gpuwaste.core.refusal import TOO_LARGE, Refusal
from gpuwaste.hub.admission_control import AdmissionControl
from gpuwaste.hub.exchange import Exchange, json_response
from gpuwaste.hub.openapi import answers


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    gate = AdmissionControl(exchange.limits.gate, lambda: None)
    most = min(MAX_BODY, exchange.limits.max_body_bytes)

    @app.post("/v1/inlets/{name}", responses=answers(InletAnswer))
    async def take(request: Request, name: str) -> Response:
        """Take CloudEvents, one or a batch, of a sender who signs them as Standard Webhooks 1.0 has it."""
        inlets = exchange.reading.get(InletParts)
        try:
            with gate.visit(request.state.cut_off) as visit:
                body = await exchange.body(request, visit.counted(request.stream()), most)
                headers = dict(request.headers)
                answer = await visit.in_thread(lambda: inlets.take(name, headers, body))
        except Refusal as refusal:
            if refusal.status == TOO_LARGE:
                inlets.refuse_size(name)
            raise
        return json_response(answer)

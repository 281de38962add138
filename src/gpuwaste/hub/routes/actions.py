"""POST /v1/actions/claim and /v1/actions/ID/step: the actor takes actions and reports its steps."""

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import FastAPI, Request, Response
from fastapi import Path as InPath

from gpuwaste.act.actions.action_service import ActionService
from gpuwaste.act.actions.action_types import ActionClaim, ActionLent, ActionReport, ActionTaken
from gpuwaste.hub.admission_control import AdmissionControl
from gpuwaste.hub.exchange import Exchange, authorization, target
from gpuwaste.hub.openapi import answers, body
from gpuwaste.net.request_signing import SignedAnswer

_MAX_BODY: Final = 64 * 1024
Id = Annotated[str, InPath(pattern=r"^[0-9a-f]{8,64}$", description="An action's id, or its first 8 digits or more.")]


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""

    def actions() -> ActionService:
        return exchange.reading.get(ActionService)

    gate = AdmissionControl(exchange.limits.gate, lambda: None)  # of its own: orders of others do not block the actor's

    async def taken(request: Request, take: Callable[[str, str, bytes], SignedAnswer]) -> Response:
        with gate.visit(request.state.cut_off) as visit:  # the sender has proven nothing yet
            found = await exchange.body(request, visit.counted(request.stream()), _MAX_BODY)
            answer = await visit.in_thread(lambda: take(authorization(request), target(request), found))
        return Response(answer.body, media_type="application/json", headers=answer.headers)

    @app.post("/v1/actions/claim", responses=answers(ActionLent), openapi_extra=body(ActionClaim))
    async def claim(request: Request) -> Response:
        """Lend the actor an action; only for [hub] actor_user."""
        return await taken(request, lambda *sent: actions().claim(*sent))

    @app.post("/v1/actions/{action_id}/step", responses=answers(ActionTaken), openapi_extra=body(ActionReport))
    async def step(request: Request, action_id: Id) -> Response:
        """Take a step that the actor reports; only for [hub] actor_user."""
        return await taken(request, lambda *sent: actions().step(sent[0], sent[1], action_id, sent[2]))

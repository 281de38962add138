"""/v1/actions: what rules want done: for people to read and decide on, for the actor to take."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final

from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as InPath

from gpuwaste.act.actions.action_types import (
    ActionClaim,
    ActionDocument,
    ActionLent,
    ActionReport,
    ActionsDocument,
    ActionsStop,
    ActionsStopped,
    ActionTaken,
)
from gpuwaste.act.actions.hub.service import MAX_ACTIONS
from gpuwaste.hub.admission_control import AdmissionControl
from gpuwaste.hub.exchange import Exchange, Name, Number, authorization, target
from gpuwaste.hub.openapi import answers, body
from gpuwaste.net.signing import SignedAnswer

_MAX_BODY: Final = 64 * 1024
Id = Annotated[str, InPath(pattern=r"^[0-9a-f]{8,64}$", description="An action's id, or how it begins.")]


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    actions = exchange.services.actions
    gate = AdmissionControl(exchange.limits.gate, lambda: None)  # of its own: nobody else's orders keep the actor's out

    @app.get("/v1/actions", responses=answers(ActionsDocument))
    async def listed(
        request: Request,
        *,
        status: Name | None = None,
        rule: Name | None = None,
        user: Name | None = None,
        start: Number | None = None,
        end: Number | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_ACTIONS)] = 1000,
    ) -> Response:
        """List actions, the newest first, the last 60 days by default; for operators and staff."""
        return await exchange.document(
            request,
            lambda scope: actions.listed(
                scope, replace(actions.question(start, end, limit), status=status, rule=rule, user=user)
            ),
        )

    @app.get("/v1/actions/{action_id}", responses=answers(ActionDocument))
    async def one(request: Request, action_id: Id) -> Response:
        """Return one action with all its steps; for operators and staff."""
        return await exchange.document(request, lambda scope: actions.one(scope, action_id))

    @app.post("/v1/actions/{action_id}/approve", responses=answers(ActionDocument))
    async def approve(request: Request, action_id: Id) -> Response:
        """Approve an action that waits for a person; for Slurm's operators and administrators."""
        return await exchange.order(request, lambda scope, _: actions.decide(scope, action_id, approve=True))

    @app.post("/v1/actions/{action_id}/refuse", responses=answers(ActionDocument))
    async def refuse(request: Request, action_id: Id) -> Response:
        """Refuse an action that was not sent yet; for Slurm's operators and administrators."""
        return await exchange.order(request, lambda scope, _: actions.decide(scope, action_id, approve=False))

    @app.post("/v1/actions/stop", responses=answers(ActionsStopped), openapi_extra=body(ActionsStop))
    async def stop(request: Request) -> Response:
        """Stop all actions until that is lifted; for Slurm's operators and administrators."""
        return await exchange.order(request, actions.stop)

    async def taken(request: Request, take: Callable[[str, str, bytes], SignedAnswer]) -> Response:
        with gate.visit(request.state.cut_off) as visit:  # whoever sends it has proven nothing yet
            found = await exchange.body(request, visit.counted(request.stream()), _MAX_BODY)
            answer = await visit.in_thread(lambda: take(authorization(request), target(request), found))
        return Response(answer.body, media_type="application/json", headers=answer.headers)

    @app.post("/v1/actions/claim", responses=answers(ActionLent), openapi_extra=body(ActionClaim))
    async def claim(request: Request) -> Response:
        """Lend the actor an action; for [hub] actor_user alone."""
        return await taken(request, actions.claim)

    @app.post("/v1/actions/{action_id}/step", responses=answers(ActionTaken), openapi_extra=body(ActionReport))
    async def step(request: Request, action_id: Id) -> Response:
        """Take a step that the actor reports; for [hub] actor_user alone."""
        return await taken(request, lambda *sent: actions.step(sent[0], sent[1], action_id, sent[2]))

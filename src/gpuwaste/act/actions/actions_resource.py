"""What rules want done, for people to read and decide on: /v1/actions."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from gpuwaste.act.actions.action_types import ActionDocument, ActionsDocument, ActionsStop, ActionsStopped
from gpuwaste.core.fields import Name, Number
from gpuwaste.core.scope import Scope
from gpuwaste.show.resource import NoQuestion, Order, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.act.actions.action_service import ActionService

MAX_ACTIONS: Final = 10_000


@dataclass(frozen=True)
class ActionsQuestion:
    """Which actions."""

    status: Name | None = None
    rule: Name | None = None
    user: Name | None = None
    start: Number | None = None
    end: Number | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_ACTIONS)] = 1000


@dataclass(frozen=True)
class OneAction:
    """Which action."""

    action_id: Annotated[str, Meta(pattern=r"^[0-9a-f]{8,64}$", description="An action's id, or how it begins.")]


def _actions(reading: Reading) -> "ActionService":
    from gpuwaste.act.actions.action_service import ActionService

    return reading.get(ActionService)


def listed(reading: Reading, scope: Scope, question: ActionsQuestion) -> ActionsDocument:
    """List actions, the newest first, the last 60 days by default; for operators and staff."""
    actions = _actions(reading)
    asked = actions.question(question.start, question.end, question.limit)
    return actions.listed(scope, replace(asked, status=question.status, rule=question.rule, user=question.user))


def one(reading: Reading, scope: Scope, question: OneAction) -> ActionDocument:
    """Return one action with all its steps; for operators and staff."""
    return _actions(reading).one(scope, question.action_id)


def approve(reading: Reading, scope: Scope, question: OneAction, _: bytes) -> ActionDocument:
    """Approve an action that waits for a person; for Slurm's operators and administrators."""
    return _actions(reading).decide(scope, question.action_id, approve=True)


def refuse(reading: Reading, scope: Scope, question: OneAction, _: bytes) -> ActionDocument:
    """Refuse an action that was not sent yet; for Slurm's operators and administrators."""
    return _actions(reading).decide(scope, question.action_id, approve=False)


def stop(reading: Reading, scope: Scope, _: NoQuestion, body: bytes) -> ActionsStopped:
    """Stop all actions until that is lifted; for Slurm's operators and administrators."""
    return _actions(reading).stop(scope, body)


RESOURCES = (
    Resource(path="/v1/actions", question=ActionsQuestion, document=ActionsDocument, read=listed),
    Resource(path="/v1/actions/{action_id}", question=OneAction, document=ActionDocument, read=one),
    Order(path="/v1/actions/{action_id}/approve", question=OneAction, document=ActionDocument, do=approve),
    Order(path="/v1/actions/{action_id}/refuse", question=OneAction, document=ActionDocument, do=refuse),
    Order(path="/v1/actions/stop", body=ActionsStop, question=NoQuestion, document=ActionsStopped, do=stop),
)

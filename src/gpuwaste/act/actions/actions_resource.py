"""The actions that rules want, for people to read and decide on: /v1/actions."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from gpuwaste.act.actions.action_text import actions_text
from gpuwaste.act.actions.action_types import (
    ActionDocument,
    ActionQuestion,
    ActionsDocument,
    ActionsStop,
    ActionsStopped,
)
from gpuwaste.core.scope import Scope
from gpuwaste.show.resource import NoQuestion, Order, ReadCommand, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.act.actions.action_service import ActionService


@dataclass(frozen=True)
class OneAction:
    """Which action."""

    action_id: Annotated[
        str, Meta(pattern=r"^[0-9a-f]{8,64}$", description="An action's id, or its first 8 digits or more.")
    ]


def _actions(reading: Reading) -> "ActionService":
    from gpuwaste.act.actions.action_service import ActionService

    return reading.get(ActionService)


def listed(reading: Reading, scope: Scope, question: ActionQuestion) -> ActionsDocument:
    """List actions, the newest first, the last 60 days by default; for operators and staff."""
    return _actions(reading).listed(scope, question)


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
    Resource(
        path="/v1/actions",
        question=ActionQuestion,
        document=ActionsDocument,
        read=listed,
        commands=[
            ReadCommand(
                text=actions_text,
                action="list",
                about="print actions, the newest first",
                whose="all users",
                limits=(1000, 1000),
                rows="actions",
                forms=False,
            )
        ],
    ),
    Resource(path="/v1/actions/{action_id}", question=OneAction, document=ActionDocument, read=one),
    Order(path="/v1/actions/{action_id}/approve", question=OneAction, document=ActionDocument, do=approve),
    Order(path="/v1/actions/{action_id}/refuse", question=OneAction, document=ActionDocument, do=refuse),
    Order(path="/v1/actions/stop", body=ActionsStop, question=NoQuestion, document=ActionsStopped, do=stop),
)

"""ActionService: the HTTP API of actions for people and the actor."""

import json
from collections.abc import Callable
from typing import Final, Self, TypeVar

import msgspec
from msgspec.structs import replace

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.actions.action_manager import ActionManager
from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import (
    ActionClaim,
    ActionDocument,
    ActionEntry,
    ActionLent,
    ActionQuestion,
    ActionReport,
    ActionsDocument,
    ActionsStop,
    ActionsStopped,
    ActionTaken,
)
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import AuthError, ParseError
from gpuwaste.core.groups import uid_named
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, CONFLICT, FORBIDDEN, LATER, NOT_FOUND, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.net.request_signing import Caller, Checkers, SignedAnswer, proven_caller, sender_of, sign_ack

LEASE_S: Final = 60
_T = TypeVar("_T")


class ActionService(Part):
    """For any thread; every method blocks on the store and may raise Refusal or StoreError."""

    def __init__(self, manager: ActionManager, checkers: Checkers, actor_user: str) -> None:
        """`actor_user` may claim actions; "": nobody may."""
        self._manager = manager
        self._store = manager.store
        self._checkers = checkers
        self._actor_user = actor_user
        self.actor_uid = uid_named(actor_user)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        checkers, actor_user = parts.get(HostPorts).checkers, parts.get(Config).hub.actor_user
        return cls(parts.get(ActionParts).manager, checkers, actor_user)

    def listed(self, scope: Scope, question: ActionQuestion) -> ActionsDocument:
        """Return actions, for operators and staff."""
        _check_reader(scope)
        return ActionsDocument(
            generated=self._store.now(),
            stopped=self._store.stopped() or None,
            actor=self._store.holder(),
            actions=self._store.listed(question),
        )

    def one(self, scope: Scope, action_id: str) -> ActionDocument:
        """Return one action, for operators and staff."""
        _check_reader(scope)
        row = self._found(action_id)
        wait = self._manager.confirmations.hindrance(row)
        return ActionDocument(action=replace(row, reason=wait) if wait else row)

    def decide(self, scope: Scope, action_id: str, *, approve: bool) -> ActionDocument:
        """Approve or refuse an action; for Slurm's operators and administrators."""
        _check_operator(scope)
        row = self._found(action_id)
        if not self._manager.decide(row, scope.user, approve=approve):
            state = "has expired" if row.expires <= self._store.now() else f"is {row.status}"
            raise Refusal(CONFLICT, f"action {row.id[:12]} {state}: nothing is changed")
        return ActionDocument(action=self._found(row.id))

    def stop(self, scope: Scope, body: bytes) -> ActionsStopped:
        """Stop all actions, or resume; for Slurm's operators and administrators."""
        _check_operator(scope)
        self._manager.stop(stop=_read(body, ActionsStop).stop)
        return ActionsStopped(stopped=self._store.stopped() or None)

    def claim(self, authorization: str, target: str, body: bytes) -> SignedAnswer:
        """Hand the next action, if any, to the actor; the answer is signed."""

        def answer() -> ActionLent:
            claim = _read(body, ActionClaim)
            holder, lease_s = self._store.lease(claim.actor, LEASE_S)
            row = None
            if holder == claim.actor:
                self._manager.expire()
                own = [name for name in claim.kinds if name in actions() and actions()[name].execution is not None]
                row = self._manager.next(own)
            return ActionLent(
                now=self._store.now(),
                lease_s=lease_s,
                holder=holder,
                stopped=bool(self._store.stopped()),
                action=row,
            )

        return self._signed(authorization, target, body, answer)

    def step(self, authorization: str, target: str, action_id: str, body: bytes) -> SignedAnswer:
        """Accept a step that the actor reports; the answer is signed."""

        def answer() -> ActionTaken:
            report = _read(body, ActionReport)
            row = self._found(action_id)
            kind = actions().get(row.kind)
            # The actor runs Slurm commands next: it needs the full lease.
            holder, lease_s = self._store.lease(report.actor, LEASE_S, anew=report.status == "sent")
            if holder != report.actor:
                reason = f"actor {holder} holds the lease"
            elif kind is None or kind.execution is None:
                reason = f"the actor does not do {row.kind}"
            else:
                reason = self._manager.report(row, report)
            return ActionTaken(taken=not reason, status=self._found(action_id).status, lease_s=lease_s, reason=reason)

        return self._signed(authorization, target, body, answer)

    def _signed(
        self, authorization: str, target: str, body: bytes, answer: Callable[[], msgspec.Struct]
    ) -> SignedAnswer:
        caller = proven_caller(self._checkers, authorization, "POST", target, body)
        if not self._is_actor(caller):
            raise Refusal(FORBIDDEN, f"{sender_of(caller)} is not the actor: see [hub] actor_user")
        found = msgspec.json.encode(answer())
        try:
            return SignedAnswer(found, sign_ack(self._checkers, caller, found, authorization))
        except AuthError as error:
            raise Refusal(LATER, f"the answer cannot be signed: {error}") from error

    def _is_actor(self, caller: Caller) -> bool:
        """Return whether the caller is the actor's user, by munge or by a token of that name."""
        if caller.via == "token":
            return bool(self._actor_user) and caller.name == self._actor_user
        return caller.via == "munge" and self.actor_uid is not None and caller.uid == self.actor_uid

    def _found(self, action_id: str) -> ActionEntry:
        found = self._store.found(action_id)
        if not found:
            raise Refusal(NOT_FOUND, f"no action {action_id!r:.80}: see gpuwaste rules actions")
        if len(found) > 1:
            raise Refusal(CONFLICT, f"several actions begin with {action_id!r:.80}: give more of the id")
        return found[0]


def _read(body: bytes, kind: type[_T]) -> _T:
    try:
        return convert(json.loads(body), kind, "the body")
    except (ValueError, RecursionError, ParseError) as error:
        raise Refusal(BAD, f"the body: {error}") from error


def _check_reader(scope: Scope) -> None:
    if not scope.everything:
        raise Refusal(FORBIDDEN, "only operators and staff may see actions")


def _check_operator(scope: Scope) -> None:
    if not scope.operator:
        raise Refusal(FORBIDDEN, "only an Operator or Administrator of Slurm may decide on actions: see sacctmgr")

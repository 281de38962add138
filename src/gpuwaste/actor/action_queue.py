"""ActionQueue: the hub as the actor asks it: for an action to take, and to note each step. Every answer is signed."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from gpuwaste.act.actions.action_types import ActionLent, ActionTaken, Outcome
from gpuwaste.core.codec import convert
from gpuwaste.net.hub_client import HubClient

CLAIM_PATH: Final = "/v1/actions/claim"


class ActionQueue(Protocol):
    """Where actions come from. Raises WireError, NoDataError, ParseError."""

    def claim(self, kinds: Sequence[str]) -> ActionLent:
        """Return the action to take now, if any, of these kinds; without kinds it only keeps the lease."""
        ...

    def report(
        self, action: str, status: Outcome, *, reason: str = "", answer: str = "", plan: Mapping[str, str] | None = None
    ) -> ActionTaken:
        """Note a step; the answer says whether the hub takes it."""
        ...


class HubActionQueue:
    """The hub behind /v1/actions."""

    def __init__(self, hub: HubClient, actor: str) -> None:
        """`actor` names this actor, the same after a restart."""
        self._hub = hub
        self._actor = actor

    def claim(self, kinds: Sequence[str]) -> ActionLent:
        """POST /v1/actions/claim."""
        found = self._hub.post_signed(CLAIM_PATH, {"actor": self._actor, "kinds": list(kinds)})
        return convert(found, ActionLent, "the hub's request")

    def report(
        self, action: str, status: Outcome, *, reason: str = "", answer: str = "", plan: Mapping[str, str] | None = None
    ) -> ActionTaken:
        """POST /v1/actions/ID/step."""
        body = {"actor": self._actor, "status": status, "reason": reason[:2000], "answer": answer[:8000]}
        if plan is not None:
            body["plan"] = dict(plan)  # type: ignore[assignment]
        return convert(self._hub.post_signed(f"/v1/actions/{action}/step", body), ActionTaken, "the hub's answer")

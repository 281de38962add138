"""The sender of a request, by credential or by the peer of the Unix socket, and what they may read."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Self

from gpuwaste.core.config import Config
from gpuwaste.core.groups import user_name
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import FORBIDDEN, LATER, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.hub.hub_ports import HubPorts
from gpuwaste.hub.roles import Roles
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.jobs.cluster_facts import ClusterFacts, UnknownSiteError
from gpuwaste.net.request_signing import Caller, Checkers, proven_caller


class Identity(Part):
    """Proves senders and finds their scope. Every method may block: call it outside the event loop."""

    def __init__(
        self,
        checkers: Checkers,
        roles: Roles,
        site: ClusterFacts,
        agent_uid: int | None,
        name_of: Callable[[int], str] | None = None,
        *,
        agent_user: str = "",
        proxy_uids: Collection[int] = (),
    ) -> None:
        self.checkers = checkers
        self._roles = roles
        self._site = site
        self._agent_uid = agent_uid
        self._agent_user = agent_user
        self._proxy_uids = proxy_uids
        self._name_of = name_of or user_name

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        hub, ports = parts.get(Config).hub, parts.get(HubPorts)
        return cls(
            ports.checkers,
            parts.get(Roles),
            parts.get(ClusterFacts),
            ports.uid_of(hub.agent_user, ports.checkers),
            ports.name_of,
            agent_user=hub.agent_user,
            proxy_uids=parts.get(Visitors).proxy_uids,
        )

    def caller(self, authorization: str, method: str, target: str, body: bytes = b"") -> Caller:
        """Return who created the credential for exactly this request. Raises Refusal 401."""
        return proven_caller(self.checkers, authorization, method, target, body)

    def reader(
        self, authorization: str, target: str, peer_uid: int | None, method: str = "GET", body: bytes = b""
    ) -> Scope:
        """Return what the sender of a request may read: by their credential, or by the Unix socket's peer uid.

        A reverse proxy's uid proves nothing: the requests that it forwards need the credential. Raises Refusal.
        """
        return self.scope(self.sender(authorization, target, peer_uid, method, body))

    def sender(
        self, authorization: str, target: str, peer_uid: int | None, method: str = "GET", body: bytes = b""
    ) -> Caller:
        """Return who sent a request, as `reader` proves it. Raises Refusal."""
        if peer_uid is not None and peer_uid not in self._proxy_uids:
            return Caller(peer_uid, "", "peer")
        return self.caller(authorization, method, target, body)

    def scope(self, caller: Caller) -> Scope:
        """Return what a proven caller may read. Raises Refusal."""
        if caller.via == "token":
            if self._is_node(caller.name):
                return Scope("", agent=True)
            return replace(self._roles.scope(caller.name), agent=self.is_advisor(caller))
        assert caller.uid is not None  # noqa: S101 narrows the type: only a token has none
        agent = caller.uid == self._agent_uid
        name = self._name_of(caller.uid)
        if not name and not agent:
            raise Refusal(FORBIDDEN, f"uid {caller.uid} has no user name on the hub's host")
        found = self._roles.scope(name) if name else Scope("")
        return replace(found, agent=agent)

    def is_agent(self, caller: Caller, node: str) -> bool:
        """Return whether the caller is the agents' user, or holds the node's own token."""
        if caller.via == "token":
            return caller.name == node
        return self._agent_uid is not None and caller.uid == self._agent_uid

    def is_advisor(self, caller: Caller) -> bool:
        """Return whether the caller is the agents' and advisors' user; a node's own token is not enough."""
        if caller.via == "token":
            return bool(self._agent_user) and caller.name == self._agent_user
        return self._agent_uid is not None and caller.uid == self._agent_uid

    def _is_node(self, name: str) -> bool:
        try:
            return self._site.is_node(name)
        except UnknownSiteError as error:
            raise Refusal(LATER, str(error)) from error

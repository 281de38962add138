"""Visitors: who asks for a page. By the peer of the Unix socket, or by a munge credential."""

from fastapi import Request

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.exchange import authorization, target
from gpuwaste.hub.roles import Scope


class SignInNeeded(GpuwasteError):  # noqa: N818 an answer, not a failure of ours
    """Nobody is signed in."""


class Visitors:
    """Finds the reader of a page."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def scope(self, request: Request) -> Scope:
        """Return what the reader may see; blocks. Raises SignInNeeded, Refusal."""
        peer_uid: int | None = getattr(request.state, "peer_uid", None)
        credential = authorization(request)
        if peer_uid is None and not credential:
            raise SignInNeeded("nobody is signed in")
        return self._identity.reader(credential, target(request), peer_uid, request.method)

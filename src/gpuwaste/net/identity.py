"""Who is at the other end: the caller as the hub sees them, and the two sides of a credential.

A credential is bound to a digest (wire.signing) of what it travels with. munge and token files implement both sides.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from gpuwaste.core.errors import AuthError, RetryableWireError

MAX_CREDENTIAL: Final = 8192  # characters; web servers bound a header at this size
Via = Literal["munge", "token", "peer"]


class RetryableAuthError(AuthError, RetryableWireError):
    """The credential was refused for a reason that passes: a clock, its age, or a credential service that is down."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The proven identity of a request's sender."""

    uid: int | None  # None for a token: it names a node or a user, not a uid
    origin: str  # IPv4 address of the host on which the credential was made; "" where unknown
    via: Via
    name: str = ""  # the name that the token file gives the token; "" for munge


class CredentialIssuer(Protocol):
    """The client's side: proves who asks, and checks that an acknowledgement is the hub's."""

    secret: bool  # what is sent must not be seen by others: never in the clear over a network

    def issue(self, digest: str) -> str:
        """Return a fresh value for the Authorization header. Raises AuthError."""
        ...

    def check_ack(self, credential: str, digest: str) -> None:
        """Raise AuthError unless the hub made `credential` over `digest`."""
        ...


class CredentialChecker(Protocol):
    """The hub's side: finds out who asks, and signs acknowledgements for them."""

    def check(self, credential: str, digest: str) -> Caller:
        """Return the sender of the credential (Authorization's value without its scheme). Raises AuthError."""
        ...

    def issue_ack(self, caller: Caller, digest: str) -> str:
        """Return the value of the acknowledgement's header for this caller. Raises AuthError."""
        ...


Checkers = Mapping[Via, CredentialChecker]
"""The checkers of credentials, by the way in which these come."""

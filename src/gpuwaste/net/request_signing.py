"""Credentials: the identity of the other end, bound to a digest of the request, or of the acknowledgement's body.

The target is the path with its query exactly as on the request line, percent-encoding included. munge and token files
implement both sides of a credential.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from gpuwaste.core.errors import AuthError, RetryableWireError
from gpuwaste.core.refusal import UNAUTHORIZED, Refusal

ACK_HEADER: Final = "Gpuwaste-Ack"
MAX_CREDENTIAL: Final = 8192  # characters; web servers limit a header to this size
Via = Literal["munge", "token", "peer"]
_SCHEMES: Final[Mapping[str, Via]] = {"munge": "munge", "bearer": "token"}


class RetryableAuthError(AuthError, RetryableWireError):
    """The credential was rejected for a temporary reason: a clock, its age, or a credential service that is down."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The verified identity of a request's sender."""

    uid: int | None  # None for a token: it names a node or a user, not a uid
    origin: str  # IPv4 address of the host on which the credential was made; "" where unknown
    via: Via
    name: str = ""  # the name that the token file gives the token; "" for munge


@dataclass(frozen=True, slots=True)
class SignedAnswer:
    """An answer that its caller can verify to be the hub's, by its headers."""

    body: bytes
    headers: dict[str, str]


class CredentialIssuer(Protocol):
    """The client's side: proves the caller's identity, and checks that an acknowledgement is the hub's."""

    secret: bool  # others must not see what is sent: never in clear text over a network

    def issue(self, digest: str) -> str:
        """Return a fresh value for the Authorization header. Raises AuthError."""
        ...

    def check_ack(self, credential: str, digest: str) -> None:
        """Raise AuthError unless the hub made `credential` over `digest`."""
        ...


class CredentialChecker(Protocol):
    """The hub's side: verifies the caller's identity, and signs acknowledgements for them."""

    def check(self, credential: str, digest: str) -> Caller:
        """Return the sender of the credential (Authorization's value without its scheme). Raises AuthError."""
        ...

    def issue_ack(self, caller: Caller, digest: str) -> str:
        """Return the value of the acknowledgement's header for this caller. Raises AuthError."""
        ...


def request_digest(method: str, target: str, body: bytes) -> str:
    """Return the hex sha256 of METHOD, newline, path with query, newline, body."""
    return hashlib.sha256(f"{method}\n{target}\n".encode() + body).hexdigest()


def ack_digest(body: bytes, authorization: str = "") -> str:
    """Return the hex sha256 of "ACK", newline, the answered request's Authorization and newline, if given, the body."""
    asked = f"{authorization.strip()}\n" if authorization else ""
    return hashlib.sha256(f"ACK\n{asked}".encode() + body).hexdigest()


def sign_request(issuer: CredentialIssuer, method: str, target: str, body: bytes = b"") -> dict[str, str]:
    """Return the headers that prove the sender of the request; valid for one attempt. Raises AuthError."""
    return {"Authorization": issuer.issue(request_digest(method, target, body))}


def verify_request(
    checkers: Mapping[Via, CredentialChecker], authorization: str, method: str, target: str, body: bytes = b""
) -> Caller:
    """Return the sender of the request, by the Authorization header's scheme.

    Raises AuthError; RetryableAuthError where the caller may succeed with a fresh credential.
    """
    if len(authorization) > MAX_CREDENTIAL:
        raise AuthError(f"Authorization has {len(authorization)} characters, more than {MAX_CREDENTIAL}")
    scheme, _, credential = authorization.strip().partition(" ")
    via = _SCHEMES.get(scheme.lower())
    if via is None or via not in checkers:
        wanted = " or ".join(s.capitalize() for s, v in _SCHEMES.items() if v in checkers)
        raise AuthError(f"Authorization: {wanted} is required")
    return checkers[via].check(credential.strip(), request_digest(method, target, body))


def proven_caller(
    checkers: Mapping[Via, CredentialChecker], authorization: str, method: str, target: str, body: bytes = b""
) -> Caller:
    """Return the caller that made the credential for exactly this request. Raises Refusal 401."""
    try:
        return verify_request(checkers, authorization, method, target, body)
    except AuthError as error:
        raise Refusal(UNAUTHORIZED, str(error), retry=isinstance(error, RetryableWireError)) from error


def sender_of(caller: Caller) -> str:
    """Return a caller's name as text."""
    return f"uid {caller.uid}" if caller.via != "token" else f"the token of {caller.name}"


def sign_ack(
    checkers: Mapping[Via, CredentialChecker], caller: Caller, body: bytes, authorization: str = ""
) -> dict[str, str]:
    """Return the headers that prove to `caller` that the hub made this acknowledgement. Raises AuthError.

    With the `authorization` of a request it is valid only for that request: munge makes a credential for each.
    """
    if caller.via not in checkers:
        return {}
    return {ACK_HEADER: checkers[caller.via].issue_ack(caller, ack_digest(body, authorization))}


def verify_ack(issuer: CredentialIssuer, credential: str, body: bytes, authorization: str = "") -> None:
    """Raise AuthError unless the hub signed this acknowledgement for the request with this `authorization`."""
    if not credential:
        raise AuthError(f"the answer is not signed ({ACK_HEADER} is missing)")
    issuer.check_ack(credential.strip(), ack_digest(body, authorization))


Checkers = Mapping[Via, CredentialChecker]
"""The checkers of credentials, by the way in which they are sent."""

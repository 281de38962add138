"""What a credential is bound to: a digest of the request, or of the acknowledgement's body.

The target is the path with its query exactly as on the request line, percent-encoding included.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

from gpuwaste.core.errors import AuthError
from gpuwaste.net.identity import MAX_CREDENTIAL, Caller, CredentialChecker, CredentialIssuer, Via

ACK_HEADER: Final = "Gpuwaste-Ack"
_SCHEMES: Final[Mapping[str, Via]] = {"munge": "munge", "bearer": "token"}


def request_digest(method: str, target: str, body: bytes) -> str:
    """Return the hex sha256 of METHOD, newline, path with query, newline, body."""
    return hashlib.sha256(f"{method}\n{target}\n".encode() + body).hexdigest()


def ack_digest(body: bytes, authorization: str = "") -> str:
    """Return the hex sha256 of "ACK", newline, the answered request's Authorization and newline, if given, the body."""
    asked = f"{authorization.strip()}\n" if authorization else ""
    return hashlib.sha256(f"ACK\n{asked}".encode() + body).hexdigest()


def sign_request(issuer: CredentialIssuer, method: str, target: str, body: bytes = b"") -> dict[str, str]:
    """Return the headers that prove who sends the request; good for one attempt. Raises AuthError."""
    return {"Authorization": issuer.issue(request_digest(method, target, body))}


def verify_request(
    checkers: Mapping[Via, CredentialChecker], authorization: str, method: str, target: str, body: bytes = b""
) -> Caller:
    """Return who sent the request, by the Authorization header's scheme.

    Raises AuthError; RetryableAuthError where the same caller may succeed with a fresh credential.
    """
    if len(authorization) > MAX_CREDENTIAL:
        raise AuthError(f"Authorization has {len(authorization)} characters, more than {MAX_CREDENTIAL}")
    scheme, _, credential = authorization.strip().partition(" ")
    via = _SCHEMES.get(scheme.lower())
    if via is None or via not in checkers:
        wanted = " or ".join(s.capitalize() for s, v in _SCHEMES.items() if v in checkers)
        raise AuthError(f"Authorization: {wanted} is required")
    return checkers[via].check(credential.strip(), request_digest(method, target, body))


def sign_ack(
    checkers: Mapping[Via, CredentialChecker], caller: Caller, body: bytes, authorization: str = ""
) -> dict[str, str]:
    """Return the headers that prove to `caller` that the hub made this acknowledgement. Raises AuthError.

    With the `authorization` of a request it answers that request and no other: munge makes a credential for each.
    """
    if caller.via not in checkers:
        return {}
    return {ACK_HEADER: checkers[caller.via].issue_ack(caller, ack_digest(body, authorization))}


def verify_ack(issuer: CredentialIssuer, credential: str, body: bytes, authorization: str = "") -> None:
    """Raise AuthError unless the hub signed this acknowledgement, of the request with this `authorization`."""
    if not credential:
        raise AuthError(f"the answer is not signed ({ACK_HEADER} is missing)")
    issuer.check_ack(credential.strip(), ack_digest(body, authorization))

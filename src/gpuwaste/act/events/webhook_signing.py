"""Signatures of webhooks as in Standard Webhooks 1.0: HMAC-SHA256 over "ID.TIMESTAMP.BODY" with a shared secret."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gpuwaste.act.events.inlet_store import SentRequest
from gpuwaste.core.errors import ConfigError, GpuwasteError
from gpuwaste.core.files import read_closed

TOLERANCE_S: Final = 300  # maximum error of a sender's clock, and how long a request can be sent again
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_VERSION: Final = "v1,"
_PREFIX: Final = "whsec_"
_LEAST_SECRET: Final = 16  # bytes
_MOST_SECRETS: Final = 4
_MAX_FILE: Final = 4096
_MAX_ID: Final = 256
_MAX_SIGNATURES: Final = 1024  # characters
_MAX_DIGITS: Final = 12


class UnsignedError(GpuwasteError):
    """A request that was not sent by a holder of the secret, or not now; `reason` is a word for the metric."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


def read_secrets(path: Path) -> tuple[bytes, ...]:
    """Return a file's secrets, one whsec_BASE64 per line: the first one signs, each is accepted. Raises ConfigError."""
    lines = read_closed(path, _MAX_FILE, "the secret").split()
    if not 1 <= len(lines) <= _MOST_SECRETS:
        raise ConfigError(f"{path}: {len(lines)} secrets: expected 1 to {_MOST_SECRETS}, each on a line of its own")
    return tuple(_secret(path, line) for line in lines)


def signed(secret: bytes, name: str, at_utc: int, body: bytes) -> dict[str, str]:
    """Return the headers of a request; without a secret it has an id and a time, and no signature."""
    headers = {ID: name, TIMESTAMP: str(at_utc)}
    if secret:
        headers[SIGNATURE] = _VERSION + base64.b64encode(_digest(secret, name, headers[TIMESTAMP], body)).decode()
    return headers


def check_signature(secrets: Sequence[bytes], headers: Mapping[str, str], body: bytes, now_utc: int) -> SentRequest:
    """Return the request. Raises UnsignedError unless a signature was made with one of the secrets within TOLERANCE_S.

    Requests are equal if the signed bytes are equal, whatever signatures they have.
    """
    name, at, given = headers.get(ID, ""), headers.get(TIMESTAMP, ""), headers.get(SIGNATURE, "")
    if not name or not at or not given:
        raise UnsignedError("unsigned", f"expected the headers {ID}, {TIMESTAMP} and {SIGNATURE}")
    if len(name) > _MAX_ID or len(given) > _MAX_SIGNATURES or not (at.isascii() and at.isdigit()):
        raise UnsignedError("unsigned", f"{ID}, {TIMESTAMP} or {SIGNATURE} is not as in Standard Webhooks")
    if len(at) > _MAX_DIGITS or abs(int(at) - now_utc) > TOLERANCE_S:
        raise UnsignedError("clock", f"{TIMESTAMP} is more than {TOLERANCE_S} s off: check the clocks of both hosts")
    wanted = [_digest(secret, name, at, body) for secret in secrets]
    found = [_decoded(part.removeprefix(_VERSION)) for part in given.split(" ") if part.startswith(_VERSION)]
    # All are compared, so that the time does not reveal which one is right.
    if not any([hmac.compare_digest(one, other) for one in wanted for other in found]):  # noqa: C419
        raise UnsignedError("signature", "the signature does not match")
    return SentRequest(hashlib.sha256(_content(name, at, body)).hexdigest(), int(at) + TOLERANCE_S)


def _digest(secret: bytes, name: str, at: str, body: bytes) -> bytes:
    return hmac.digest(secret, _content(name, at, body), "sha256")


def _content(name: str, at: str, body: bytes) -> bytes:
    return f"{name}.{at}.".encode("utf-8", "backslashreplace") + body


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _secret(path: Path, text: str) -> bytes:
    try:
        secret = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(f"{path}: expected {_PREFIX} and base64") from error
    if len(secret) < _LEAST_SECRET:
        raise ConfigError(f"{path}: {len(secret)} bytes: expected {_LEAST_SECRET} at least (openssl rand -base64 32)")
    return secret

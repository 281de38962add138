"""munge credentials through libmunge: who encoded a payload, where and when, verified by munged.

Only the return code of a decode counts: an expired or replayed credential still has a uid and a payload.
"""

import ctypes
import hmac
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

from gpuwaste.core.errors import AuthError, ConfigError
from gpuwaste.core.unix_socket import require_room
from gpuwaste.net.request_signing import MAX_CREDENTIAL, Caller, RetryableAuthError

MAX_PAYLOAD: Final = 4096  # bytes; a digest has 64
EXPIRED: Final = 15
REWOUND: Final = 16
START_MUNGE: Final = ": start munge (systemctl start munge)"
_OPT_ADDR4: Final = 5
_OPT_ENCODE_TIME: Final = 6
_OPT_SOCKET: Final = 8
_SOCKET_CODES: Final = frozenset({5, 6, 7})  # out of memory, socket error, socket timeout
_CLOCK_CODES: Final = frozenset({EXPIRED, REWOUND})


class MungeUnreachedError(RetryableAuthError):
    """munged of this host does not answer: no credential can be made or decoded."""


@dataclass(frozen=True, slots=True)
class MungeIdentity:
    """The facts about a credential that munged has verified."""

    uid: int
    gid: int
    origin_address: str  # IPv4 address of the encoding host, as its munged reports it
    encoded_at: int  # UTC seconds
    payload: bytes


class Munge:
    """Encodes and decodes with the munged at `socket` ("": munge's default). Threads may share one object."""

    def __init__(self, socket: str = "") -> None:
        require_room("[common] munge_socket", socket)
        self._socket = socket.encode()
        self._lib = _library()

    def encode(self, payload: bytes) -> str:
        """Return a credential of this process' user over `payload`.

        Raises AuthError; RetryableAuthError where munged is not reachable.
        """
        if len(payload) > MAX_PAYLOAD:
            raise AuthError(f"munge: a payload of {len(payload)} bytes is more than {MAX_PAYLOAD}")
        with self._context() as context:
            made = ctypes.c_void_p()
            code = self._lib.munge_encode(ctypes.byref(made), context, payload, len(payload))
            try:
                self._check(code, context)
                return (ctypes.string_at(made) if made else b"").decode("ascii")
            finally:
                _free(made)

    def decode(self, credential: str) -> MungeIdentity:
        """Return the verified facts; a credential decodes only once.

        Raises AuthError on every code except success; RetryableAuthError where a fresh credential may succeed (expired,
        from the future, munged not reachable).
        """
        raw = _checked_text(credential)
        with self._context() as context:
            buffer, length = ctypes.c_void_p(), ctypes.c_int()
            uid, gid = ctypes.c_uint32(), ctypes.c_uint32()
            code = self._lib.munge_decode(raw, context, *(ctypes.byref(out) for out in (buffer, length, uid, gid)))
            try:
                self._check(code, context)
                payload = ctypes.string_at(buffer, length.value) if buffer else b""
            finally:
                _free(buffer)
            if len(payload) > MAX_PAYLOAD:
                raise AuthError(f"munge: the credential's payload has {len(payload)} bytes, more than {MAX_PAYLOAD}")
            address, made_at = (ctypes.c_ubyte * 4)(), ctypes.c_long()
            self._check(self._lib.munge_ctx_get(context, _OPT_ADDR4, ctypes.byref(address)), context)
            self._check(self._lib.munge_ctx_get(context, _OPT_ENCODE_TIME, ctypes.byref(made_at)), context)
        return MungeIdentity(uid.value, gid.value, socket.inet_ntoa(bytes(address)), made_at.value, payload)

    @contextmanager
    def _context(self) -> Iterator[ctypes.c_void_p]:
        """Make a context for one call: threads must not share one, and a decode changes it."""
        context = ctypes.c_void_p(self._lib.munge_ctx_create())
        if not context:
            raise RetryableAuthError("munge: out of memory")
        try:
            if self._socket:
                self._check(self._lib.munge_ctx_set(context, _OPT_SOCKET, self._socket), context)
            yield context
        finally:
            self._lib.munge_ctx_destroy(context)

    def _check(self, code: int, context: ctypes.c_void_p) -> None:
        if code == 0:
            return
        text = self._lib.munge_ctx_strerror(context) or self._lib.munge_strerror(code) or b""
        words = text.decode("utf-8", "replace")[:200]
        if code in _SOCKET_CODES:
            why = words.removesuffix(" (Did you start munged?)")
            raise MungeUnreachedError(f"munged does not answer on this host ({why}){START_MUNGE}")
        if code in _CLOCK_CODES:
            raise RetryableAuthError(f"munge: {words} ({code}): compare the clocks of the two hosts")
        raise AuthError(f"munge: {words} ({code})")


class MungeIssuer:
    """The client's side of munge; `hub_uid` is the uid that acknowledgements must carry."""

    secret = False  # one use, and bound to the request

    def __init__(self, munge: Munge, hub_uid: int | None = None) -> None:
        self._munge = munge
        self._hub_uid = hub_uid

    def issue(self, digest: str) -> str:
        """Return `Munge CREDENTIAL`, made now."""
        return f"Munge {self._munge.encode(digest.encode())}"

    def check_ack(self, credential: str, digest: str) -> None:
        """Raise AuthError unless the hub's user made the credential over `digest`."""
        identity = self._munge.decode(credential)
        if identity.uid != self._hub_uid:
            raise AuthError(f"the acknowledgement is signed by uid {identity.uid}, not by the hub's {self._hub_uid}")
        _check_digest(identity.payload, digest, "acknowledgement")


class MungeChecker:
    """The hub's side of munge."""

    def __init__(self, munge: Munge) -> None:
        self._munge = munge

    def check(self, credential: str, digest: str) -> Caller:
        """Return the uid and the host that made the credential over `digest`."""
        identity = self._munge.decode(credential)
        _check_digest(identity.payload, digest, "request")
        return Caller(identity.uid, identity.origin_address, "munge")

    def issue_ack(self, caller: Caller, digest: str) -> str:  # noqa: ARG002 a token's side needs the caller
        """Return a credential of this process' user over `digest`."""
        return self._munge.encode(digest.encode())


def _check_digest(payload: bytes, digest: str, what: str) -> None:
    if not hmac.compare_digest(payload, digest.encode()):
        raise AuthError(f"the credential is for another {what}")


def _checked_text(credential: str) -> bytes:
    """Reject texts that must not be passed to libmunge, a C library."""
    if len(credential) > MAX_CREDENTIAL:
        raise AuthError(f"munge: a credential of {len(credential)} characters is more than {MAX_CREDENTIAL}")
    if not (credential.isascii() and credential.isprintable() and credential):
        raise AuthError("munge: the credential is empty or contains invalid characters")
    return credential.encode("ascii")


def _free(pointer: ctypes.c_void_p) -> None:
    if pointer:
        _libc().free(pointer)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free.restype = None
    return libc


@cache
def _library() -> ctypes.CDLL:
    """Load libmunge and declare the functions that are used. Raises ConfigError."""
    try:
        lib = ctypes.CDLL("libmunge.so.2")
    except OSError as error:
        raise ConfigError(
            "libmunge.so.2 is not installed: install munge's library (libmunge2, munge-libs) or set token_file"
        ) from error
    lib.munge_ctx_create.restype = ctypes.c_void_p
    lib.munge_ctx_destroy.argtypes = [ctypes.c_void_p]
    lib.munge_ctx_destroy.restype = None
    lib.munge_ctx_strerror.argtypes = [ctypes.c_void_p]
    lib.munge_ctx_strerror.restype = ctypes.c_char_p
    lib.munge_strerror.argtypes = [ctypes.c_int]
    lib.munge_strerror.restype = ctypes.c_char_p
    # munge_ctx_get and munge_ctx_set take a third argument of the option's own type.
    lib.munge_ctx_get.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lib.munge_ctx_set.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lib.munge_encode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    lib.munge_decode.argtypes = [ctypes.c_char_p, *([ctypes.c_void_p] * 5)]
    return lib

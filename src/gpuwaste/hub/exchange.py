"""Exchange: what every route does with a request: read it, authenticate the caller, send the answer.

Each kind of work has a pool of threads, so that no kind waits for another.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Final, TypeVar

from fastapi import Query, Request, Response
from msgspec import Struct, to_builtins
from starlette.requests import ClientDisconnect

from gpuwaste.core.errors import AuthError
from gpuwaste.core.refusal import BAD, LATER, NO_SUCH_ENCODING, TOO_LARGE, TOO_SLOW, Refusal
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.core.scope import Scope
from gpuwaste.core.thread_pool import REPORTS_AT_ONCE, ThreadPool, UserPlaces
from gpuwaste.hub.admission_control import AdmissionControl, PerUserLimit
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.hub_ports import ServiceLimits
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.net.request_signing import sign_ack
from gpuwaste.show.resource import Reading

REPORTS_OF_USER: Final = 2  # a third of the places, and of the memory that all of them use
_READERS: Final = 64
_QUESTIONS: Final = 32
_QUESTIONS_OF_USER: Final = 4
_PROOFS: Final = 16
_PROOFS_OF_USER: Final = 4
_CURVES: Final = 24
_CURVES_OF_USER: Final = 2
_STREAMS: Final = 4
_FILES: Final = 4
_MAX_NUMBER: Final = 2**40
_FAILURES_QUIET_S: Final = 60.0
_T = TypeVar("_T")
Number = Annotated[int, Query(ge=0, le=_MAX_NUMBER)]
Name = Annotated[str, Query(min_length=1, max_length=256)]
Content = Struct | dict[str, Any] | bytes
"""An answer: a declared type, an object that is JSON already, or the bytes of one."""
_PLAIN: Final = frozenset({"", "identity"})


def _heavy() -> UserPlaces:
    return UserPlaces(REPORTS_OF_USER)


@dataclass(slots=True)
class Threads:
    """The pools of a hub."""

    heavy: UserPlaces = field(default_factory=_heavy)
    """Places of a user for reports and pages together."""
    health: ThreadPool = field(default_factory=lambda: ThreadPool(1))
    metrics: ThreadPool = field(default_factory=lambda: ThreadPool(1))
    proofs: ThreadPool = field(default_factory=lambda: ThreadPool(_PROOFS, UserPlaces(_PROOFS_OF_USER)))
    """Authentication: credentials, sessions and roles. No sender is proven yet: a session counts as a user."""
    questions: ThreadPool = field(default_factory=lambda: ThreadPool(_QUESTIONS, UserPlaces(_QUESTIONS_OF_USER)))
    """Documents other than reports, and orders."""
    curves: ThreadPool = field(default_factory=lambda: ThreadPool(_CURVES, UserPlaces(_CURVES_OF_USER)))
    """Samples: these requests wait for nodes."""
    streams: ThreadPool = field(default_factory=lambda: ThreadPool(_STREAMS, UserPlaces(1)))
    """Reading events for connected readers."""
    files: ThreadPool = field(default_factory=lambda: ThreadPool(_FILES))
    """Reading files that are sent."""
    reports: ThreadPool = field(init=False)
    """Reports and long documents: each uses tens of MB of the store's memory while it is made."""
    readers: ThreadPool = field(init=False)
    """Pages, in one pool for all readers: `Pages` bounds how many are made at once."""

    def __post_init__(self) -> None:
        self.reports = ThreadPool(REPORTS_AT_ONCE, self.heavy)
        self.readers = ThreadPool(_READERS, self.heavy)


class Exchange:
    """The hub's parts, and how requests reach them. Every method may raise Refusal."""

    def __init__(self, reading: Reading, limits: ServiceLimits) -> None:
        self.reading = reading
        self.limits = limits
        self.turns = PerUserLimit()
        self._orders = AdmissionControl(limits.gate, lambda: None)
        self.threads = Threads()

    @cached_property
    def failures(self) -> EventLog:
        """Logs requests that cannot be answered: at most one line of each kind per minute."""
        return EventLog(self.reading.get(HostPorts).clock, _FAILURES_QUIET_S)

    async def body(
        self, request: Request, chunks: AsyncIterator[bytes] | None = None, max_bytes: int | None = None
    ) -> bytes:
        """Return the request's body, read from `chunks` where they are given; `max_bytes` is below the hub's limit."""
        headers = request.headers
        try:
            return await _read_body(
                chunks or request.stream(),
                length=headers.get("content-length"),
                encoding=headers.get("content-encoding", ""),
                max_bytes=self.limits.max_body_bytes if max_bytes is None else max_bytes,
                deadline_s=self.limits.body_deadline_s,
            )
        except ClientDisconnect as error:
            raise Refusal(BAD, "the body is incomplete") from error
        except Refusal as refusal:
            refusal.closes = True
            raise

    async def scope(self, request: Request, body: bytes = b"") -> Scope:
        """Return the caller, and what they may see."""
        peer_uid: int | None = getattr(request.state, "peer_uid", None)
        reader, user = self.reading.get(Identity).reader, _peer(peer_uid)
        return await self.threads.proofs.run(
            user, reader, authorization(request), target(request), peer_uid, request.method, body
        )

    async def visitor(self, request: Request, ask: Callable[[Request], _T]) -> _T:
        """Call the visitors about a request for a page, in a thread; few at a time for one session."""
        return await self.threads.proofs.run(self.reading.get(Visitors).claim(request), ask, request)

    async def document(
        self, request: Request, build: Callable[[Scope], Content], pool: ThreadPool | None = None
    ) -> Response:
        """Answer a request without a body with what `build` returns, made in a thread (of the pool)."""
        scope = await self.scope(request)
        with self.turns.taken(scope):
            body = await (pool or self.threads.questions).run(scope.bounded_user, lambda: _encoded(build(scope)))
        return Response(body, media_type="application/json")

    async def signed(
        self, request: Request, build: Callable[[Scope], Content], pool: ThreadPool | None = None
    ) -> Response:
        """Answer as `document` does, signed for the credential of the request; on the Unix socket unsigned."""
        peer_uid: int | None = getattr(request.state, "peer_uid", None)
        identity, sender, user = self.reading.get(Identity), authorization(request), _peer(peer_uid)
        proofs = self.threads.proofs
        caller = await proofs.run(user, identity.sender, sender, target(request), peer_uid)
        scope = await proofs.run(user, identity.scope, caller)
        with self.turns.taken(scope):
            body = await (pool or self.threads.questions).run(scope.bounded_user, lambda: _encoded(build(scope)))
        try:
            headers = await proofs.run(user, sign_ack, identity.checkers, caller, body, sender)
        except AuthError as error:
            raise Refusal(LATER, f"the answer cannot be signed: {error}") from error
        return Response(body, media_type="application/json", headers=headers)

    async def order(self, request: Request, do: Callable[[Scope, bytes], Content]) -> Response:
        """Answer a request with a body with what `do` returns, done in a thread."""
        with self._orders.visit(request.state.cut_off) as visit:  # the sender has proven nothing yet
            body = await self.body(request, visit.counted(request.stream()))
        scope = await self.scope(request, body)
        with self.turns.taken(scope):
            return json_response(await self.threads.questions.run(scope.bounded_user, do, scope, body))


def _peer(peer_uid: int | None) -> str:
    """Return who takes a place in the pool of proofs: a user of the Unix socket; "": the sender is not proven yet."""
    return "" if peer_uid is None else f"uid {peer_uid}"


def authorization(request: Request) -> str:
    """Return the header with the credential, "" for none."""
    return request.headers.get("authorization", "")


def target(request: Request) -> str:
    """Return the request line's target exactly as it was sent: the credential is bound to it."""
    path: bytes = request.scope["raw_path"]
    query: bytes = request.scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("latin-1")


def json_response(content: Content, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer of one JSON object."""
    return Response(_encoded(content), status_code=status, media_type="application/json", headers=headers)


def _encoded(content: Content) -> bytes:
    if isinstance(content, bytes):
        return content
    found = content if isinstance(content, dict) else to_builtins(content)
    return json.dumps(found, separators=(",", ":")).encode()


async def _read_body(
    chunks: AsyncIterator[bytes], *, length: str | None, encoding: str, max_bytes: int, deadline_s: float
) -> bytes:
    """Return the full body. `length` and `encoding` are the values of Content-Length and Content-Encoding.

    Raises Refusal: 413 beyond `max_bytes`, 408 beyond `deadline_s`, 415 for a compressed body, 400 for a bad length.
    """
    if encoding.strip().lower() not in _PLAIN:
        raise Refusal(NO_SUCH_ENCODING, f"Content-Encoding {encoding[:40]!r}: send the batch uncompressed")
    if length is not None and not (length.isascii() and length.isdigit()):
        raise Refusal(BAD, "Content-Length is not a number")
    if length is not None and int(length) > max_bytes:
        raise _too_large(max_bytes)
    parts = bytearray()
    try:
        async with asyncio.timeout(deadline_s):
            async for chunk in chunks:
                parts += chunk
                if len(parts) > max_bytes:
                    raise _too_large(max_bytes)
    except TimeoutError as error:
        raise Refusal(TOO_SLOW, f"the body was not complete within {deadline_s:g} s: send smaller batches") from error
    return bytes(parts)


def _too_large(max_bytes: int) -> Refusal:
    return Refusal(TOO_LARGE, f"the body is larger than {max_bytes} bytes: send smaller batches", max_bytes=max_bytes)

"""An HTTP proxy on loopback that breaks an exchange off at an exact place, for tests of what gets lost and what not.

with FaultProxy(("127.0.0.1", hub_port)) as proxy:
    fault = proxy.arm(Fault(Place.ANSWER, action=hub.kill))
    fault.wait(10)  # an answer came back, the hub is dead, and the client never saw the answer

Without a fault it forwards. A fault strikes once, at the next exchange that it matches, and both connections are closed
there.
"""

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from io import BufferedIOBase
from typing import Final

from gpuwaste.testing.cluster_process import ClusterError
from gpuwaste.testing.loopback_port import LoopbackPort

_TIMEOUT_S: Final = 60.0
_MAX_HEAD: Final = 64 * 1024


class Place(Enum):
    """Where an exchange breaks off."""

    CONNECT = "nothing of the request is passed on"
    REQUEST_PART = "a part of the request's body is passed on"
    REQUEST = "the whole request is passed on, its answer not waited for"
    ANSWER = "the whole answer came and is not passed on"
    ANSWER_PART = "a part of the answer's body is passed on"


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """What a client sent."""

    method: str
    target: str
    head: bytes
    body: bytes

    @property
    def node(self) -> str:
        """The node that a batch of hours names, "" for any other request."""
        try:
            first = json.loads(self.body.partition(b"\n")[0])
        except ValueError:
            return ""
        return str(first.get("node", "")) if isinstance(first, dict) else ""


def is_hours(request: ProxiedRequest) -> bool:
    """Tell whether a batch of hours is sent."""
    return request.method == "POST" and request.target == "/v1/hours"


@dataclass(slots=True, eq=False)
class Fault:
    """One break: its place, what it waits for, and what is done there before the connections are closed."""

    place: Place
    action: Callable[[], object] = bool
    matches: Callable[[ProxiedRequest], bool] = is_hours
    body_bytes: int = 0  # of the request's or the answer's body that are passed on first
    repeat: bool = False  # strikes until disarmed
    request: ProxiedRequest | None = None  # the exchange that it struck
    _struck: threading.Event = field(default_factory=threading.Event)

    def wait(self, timeout_s: float) -> ProxiedRequest:
        """Wait until it has struck and return the request; ClusterError when time is up."""
        if not self._struck.wait(timeout_s) or self.request is None:
            raise ClusterError(f"no exchange to break off within {timeout_s:g} s ({self.place.value})")
        return self.request


class _BrokenOffError(Exception):
    """The exchange ends here, by a fault or by one side's own doing."""


class FaultProxy(LoopbackPort):
    """Forwards HTTP/1.1 exchanges to `target`, one thread for each connection."""

    def __init__(self, target: tuple[str, int]) -> None:
        super().__init__("fault-proxy")
        self.target = target
        self.forwarded = 0
        self._armed: list[Fault] = []

    def arm(self, fault: Fault) -> Fault:
        """Let a fault strike from now on; of several that match, the one armed first."""
        with self._lock:
            self._armed.append(fault)
        return fault

    def disarm(self, fault: Fault) -> None:
        """Take a fault back, whether it has struck or not."""
        with self._lock:
            if fault in self._armed:
                self._armed.remove(fault)

    def _serve(self, client: socket.socket) -> None:
        self._enter(client)
        hub: socket.socket | None = None
        try:
            with client.makefile("rb") as incoming:
                while (request := _read_request(incoming)) is not None:
                    fault = self._take(request)
                    if fault and fault.place is Place.CONNECT:
                        self._strike(fault, request)
                    hub = hub or self._enter(socket.create_connection(self.target, _TIMEOUT_S))
                    self._exchange(client, hub, request, fault)
        except (_BrokenOffError, OSError, ValueError):
            pass  # both connections are closed below, as they would be without a proxy
        finally:
            for connection in (client, hub):
                if connection is not None:
                    self._leave(connection)

    def _exchange(
        self, client: socket.socket, hub: socket.socket, request: ProxiedRequest, fault: Fault | None
    ) -> None:
        if fault and fault.place is Place.REQUEST_PART:
            hub.sendall(request.head + request.body[: fault.body_bytes])
            self._strike(fault, request)
        hub.sendall(request.head + request.body)
        if fault and fault.place is Place.REQUEST:
            self._strike(fault, request)
        head, body, last = _read_answer(hub, request.method)
        if fault and fault.place is Place.ANSWER_PART:
            client.sendall(head + body[: fault.body_bytes])
        if fault:
            self._strike(fault, request)
        with self._lock:
            self.forwarded += 1  # before the client has the answer, so that whoever read it also reads the count
        client.sendall(head + body)
        if last:
            raise _BrokenOffError

    def _take(self, request: ProxiedRequest) -> Fault | None:
        with self._lock:
            for fault in self._armed:
                if fault.matches(request):
                    if not fault.repeat:
                        self._armed.remove(fault)
                    return fault
        return None

    @staticmethod
    def _strike(fault: Fault, request: ProxiedRequest) -> None:
        fault.request = request
        try:
            fault.action()
        finally:
            fault._struck.set()  # noqa: SLF001 the other half of this module
        raise _BrokenOffError

    def _enter(self, connection: socket.socket) -> socket.socket:
        connection.settimeout(_TIMEOUT_S)
        return super()._enter(connection)


def _read_request(incoming: BufferedIOBase) -> ProxiedRequest | None:
    """Read one request with a body of a known length; None at an orderly end."""
    head = _read_head(incoming)
    if head is None:
        return None
    method, target, *_ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    length = int(_header(head, b"content-length") or 0)
    body = incoming.read(length)
    if len(body) < length:
        raise _BrokenOffError
    return ProxiedRequest(method, target, head, body)


def _read_head(incoming: BufferedIOBase) -> bytes | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = incoming.readline(_MAX_HEAD)
        head += line
        if not line or len(head) > _MAX_HEAD:
            if head:
                raise _BrokenOffError
            return None
    return head


def _header(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return b""


def _read_answer(hub: socket.socket, method: str) -> tuple[bytes, bytes, bool]:
    """Return head and body as they came, and whether the hub ends the connection after them."""
    with hub.makefile("rb") as incoming:
        head = _read_head(incoming)
        if head is None:
            raise _BrokenOffError
        length = _header(head, b"content-length")
        bodiless = method == "HEAD" or head.split(b" ", 2)[1] in {b"204", b"304"}
        body = b"" if bodiless else incoming.read(int(length)) if length else incoming.read()
    last = _header(head, b"connection").lower() == b"close" or not (length or bodiless)
    return head, body, last

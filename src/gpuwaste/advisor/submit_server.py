"""Server: the event loop: connections of submit plugins, one request and one reply each, and small work between them.

One thread, plain epoll: a connection costs an accept, a read, a write and a close. Blocking work is done by other
threads, which hand in their results (`call`), or a request is deferred and finished later. Work that can wait is done
one piece at a time while there are no requests.
"""

import contextlib
import gc
import os
import select
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from gpuwaste.advice.submit_frames import HEADER, MAX_REQUEST, decode_header
from gpuwaste.advisor.advisor_counters import Counters
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.advisor_socket import ListeningSocket
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ParseError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.net.peers import peer_of

MAX_CONNECTIONS: Final = 512
SILENT_US: Final = 1_000_000  # a connection without a complete request after that is dropped
_ACCEPTS: Final = 32  # connections accepted before the next request is answered
TOGETHER: Final = 16  # requests judged together, if that many wait: this halves the cost of each, or better
_SHARE: Final = 16  # one piece of other work after that many requests, however busy
_WAIT_S: Final = 0.25
_TIDY_US: Final = 10_000_000  # between two collections of young garbage, without requests
_SWEEP_US: Final = 600_000_000  # between two full collections
_NOW: Final = socket.MSG_DONTWAIT
_NOT_ACCEPTED: Final = log_event.warning(
    "connection-not-accepted: cannot accept a connection, repeats are only counted: {error}",
    "Often out of file descriptors: find out what connects so often. Jobs are accepted without advice.",
)
_NOT_OURS: Final = log_event.warning(
    "request-invalid: connection closed, repeats are only counted: {error}",
    "A program that is no submit plugin uses the socket: find out which.",
)


@dataclass(slots=True, eq=False)
class Connection:
    """One connection; `arrived_us` is the steady clock when it was accepted, `until_us` when its answer is due."""

    sock: socket.socket
    arrived_us: int
    data: bytearray | None = None  # received so far, if it arrives in parts
    body: bytes = b""
    until_us: int = 0
    work: object = None  # the handler's state of a deferred request


class SubmitHandler(Part, ABC):
    """Answers requests, on the loop's thread."""

    reply: Callable[[Connection, bytes], None]
    """Answers a deferred request: `Server.reply`."""

    @abstractmethod
    def answer(self, exchanges: Sequence[Connection]) -> None:
        """Reply to complete requests, or defer some. Raises nothing."""

    @abstractmethod
    def turned_away(self, exchange: Connection, why: str) -> bytes:
        """Return the reply to a request that there is no time to judge."""

    @abstractmethod
    def tick(self, now_us: int) -> bool:
        """Answer requests deferred for too long; true while some are deferred."""


@dataclass(slots=True)
class IntakeLimits:
    """Limits of requests accepted at once."""

    max_queue: int = 64
    connections: int = MAX_CONNECTIONS
    silent_us: int = SILENT_US
    allowed: frozenset[int] = frozenset()  # uids that may send requests


class Server(Part):
    """The loop; `run` until `stop`. Only `call` and `stop` are for other threads."""

    def __init__(
        self, listener: socket.socket, desk: SubmitHandler, clock: Clock, limits: IntakeLimits, counters: Counters
    ) -> None:
        self.limits = limits
        self._listener = listener
        self._desk = desk
        desk.reply = self.reply
        self._clock = clock
        self._counters = counters
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._closed = False
        self._waking = threading.RLock()  # a signal may stop the loop while it closes
        self._epoll.register(listener.fileno(), select.EPOLLIN)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._reading: dict[int, Connection] = {}
        self._queue: deque[Connection] = deque()
        self._open = 0
        self._calls: deque[Callable[[], None]] = deque()
        self._work: Callable[[], bool] = bool
        self._each_turn: Callable[[], None] = lambda: None
        self._buffer = bytearray(HEADER.size + MAX_REQUEST + 1)
        self._view = memoryview(self._buffer)
        self._stop = threading.Event()
        self._tidied_us = self._swept_us = clock.mono_us()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor. Raises ConfigError where it cannot listen."""
        ports, max_queue = parts.get(AdvisorPorts), parts.get(Config).advisor.max_queue
        desk = parts.get(SubmitHandler)  # type: ignore[type-abstract]  # made before, of a class that is not
        return cls(
            parts.get(ListeningSocket).socket,
            desk,
            ports.clock,
            IntakeLimits(max_queue, allowed=ports.allowed),
            parts.get(Counters),
        )

    @property
    def reloads(self) -> Reloads:
        """The key of the most requests that may wait."""
        return {("advisor.max_queue",): lambda c: setattr(self.limits, "max_queue", c.advisor.max_queue)}

    @property
    def depth(self) -> int:
        """The number of waiting requests."""
        return len(self._queue)

    def call(self, work: Callable[[], None]) -> None:
        """Run work on the loop's thread, soon."""
        self._calls.append(work)
        self._wake_up()

    def between(self, work: Callable[[], bool]) -> None:
        """Set the work done between requests: one small piece per call, false where nothing is left."""
        self._work = work

    def each_turn(self, work: Callable[[], None]) -> None:
        """Set the work done in each turn of the loop, at least four times a second: it must take almost no time."""
        self._each_turn = work

    def stop(self) -> None:
        """End the loop once waiting requests are answered; also for signal handlers."""
        self._stop.set()
        self._wake_up()

    def run(self) -> None:
        """Serve until stopped."""
        since, more = 0, True
        while not (self._stop.is_set() and not self._queue):
            self._each_turn()
            busy = bool(self._queue)
            put_off = self._desk.tick(self._clock.mono_us())
            quiet = not self._turn(0.0 if busy or more else (0.001 if put_off else _WAIT_S))
            if self._queue:
                together = [self._queue.popleft() for _ in range(min(len(self._queue), TOGETHER))]
                self._desk.answer(together)
                since += len(together)
            if not self._queue or since >= _SHARE:
                more, since = self._work(), 0
            if quiet and not more and not put_off:
                self._tidy()
        self._close()

    def reply(self, exchange: Connection, frame: bytes) -> None:
        """Send the reply and close the connection; a peer that is gone, or does not read, is ignored."""
        with contextlib.suppress(OSError):
            exchange.sock.send(frame, _NOW | socket.MSG_NOSIGNAL)
        self._hang_up(exchange)

    def _turn(self, timeout_s: float) -> bool:
        """Handle what has arrived; return whether anything has."""
        events = self._epoll.poll(timeout_s)
        for number, _ in events:
            if number == self._wake:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
            elif number == self._listener.fileno():
                self._accept()
            elif (exchange := self._reading.get(number)) is not None:
                self._read(exchange)
        while self._calls:
            self._called(self._calls.popleft())
        if self._reading:
            self._drop_silent()
        return bool(events)

    def _called(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 a defect in another thread's work must not end the loop
            BUG.log(error, what="call in the main loop")

    def _accept(self) -> None:
        for _ in range(_ACCEPTS):
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # out of descriptors, or a peer that has gone already
                self._counters.troubles["accept"] += 1
                if self._counters.troubles["accept"] == 1:
                    _NOT_ACCEPTED.log(error=error.strerror)
                return
            self._open += 1
            exchange = Connection(sock, self._clock.mono_us())
            if peer_of(sock)[1] not in self.limits.allowed:
                self._counters.asked["refused"] += 1
                self._hang_up(exchange)
            elif self._open > self.limits.connections:
                self._counters.asked["full"] += 1
                self.reply(exchange, self._desk.turned_away(exchange, "full"))
            else:
                self._read(exchange)

    def _read(self, exchange: Connection) -> None:
        """Read the available data; a complete request goes into the queue."""
        try:
            count = exchange.sock.recv_into(self._buffer, 0, _NOW)
        except BlockingIOError:
            self._await(exchange)
            return
        except OSError:
            count = 0
        if not count:
            self._counters.asked["broken off"] += 1
            self._hang_up(exchange)
            return
        if exchange.data is None:
            part: bytes | bytearray = bytes(self._view[:count])
        else:
            exchange.data += self._view[:count]
            part = exchange.data
        try:
            needed = HEADER.size + (decode_header(bytes(part[: HEADER.size])) if len(part) >= HEADER.size else 1)
        except ParseError as error:
            self._bad(exchange, str(error))
            return
        if len(part) > needed:
            self._bad(exchange, "advice: more than one frame on a connection")
        elif len(part) < needed:
            exchange.data = bytearray(part) if exchange.data is None else exchange.data
            self._await(exchange)
        else:
            exchange.body = bytes(part[HEADER.size :])
            self._enqueue(exchange)

    def _enqueue(self, exchange: Connection) -> None:
        if self._reading.pop(exchange.sock.fileno(), None) is not None:
            self._epoll.unregister(exchange.sock.fileno())
        exchange.data = None
        if len(self._queue) >= self.limits.max_queue:
            self._counters.asked["behind"] += 1
            self.reply(exchange, self._desk.turned_away(exchange, "behind"))
            return
        self._queue.append(exchange)

    def _await(self, exchange: Connection) -> None:
        number = exchange.sock.fileno()
        if number not in self._reading:
            self._reading[number] = exchange
            self._epoll.register(number, select.EPOLLIN)

    def _bad(self, exchange: Connection, words: str) -> None:
        """Close a connection without a valid request: the plugin counts that as a miss, as it should."""
        self._counters.asked["bad"] += 1
        if self._counters.asked["bad"] == 1:
            _NOT_OURS.log(error=words)
        self._hang_up(exchange)

    def _drop_silent(self) -> None:
        """Drop connections whose request has not arrived; the first in the table is the oldest."""
        before = self._clock.mono_us() - self.limits.silent_us
        while self._reading and (oldest := next(iter(self._reading.values()))).arrived_us < before:
            self._counters.asked["silent"] += 1
            self._hang_up(oldest)

    def _hang_up(self, exchange: Connection) -> None:
        self._reading.pop(exchange.sock.fileno(), None)  # closing removes it from epoll
        exchange.sock.close()
        self._open -= 1

    def _tidy(self) -> None:
        """Collect garbage while there are no requests; never otherwise (see daemon)."""
        now_us = self._clock.mono_us()
        if now_us - self._tidied_us > _TIDY_US:
            everything = now_us - self._swept_us > _SWEEP_US
            gc.collect(2 if everything else 0)
            self._tidied_us = now_us
            if everything:
                self._swept_us = now_us

    def _close(self) -> None:
        for exchange in list(self._reading.values()):
            self._hang_up(exchange)
        self._epoll.close()
        with self._waking:
            self._closed = True
            os.close(self._wake)

    def _wake_up(self) -> None:
        """End the loop's wait. After the end its eventfd's descriptor may be another file's: nothing is written."""
        with self._waking:
            if not self._closed:
                os.eventfd_write(self._wake, 1)

"""The shipper: a thread that sends rows from an outbox to the hub and removes them once the hub has them.

The agent ships hours with it, the advisor verdicts.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError, RetryableWireError
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.worker import Worker, backoff_s
from gpuwaste.net.batch import MAX_BATCH_BYTES, Ack, Envelope
from gpuwaste.net.hub_client import BusyError, RefusedError

BACKOFF_FIRST_S: Final = 2.0
BACKOFF_MAX_S: Final = 900.0
MIN_BATCH_BYTES: Final = 8 * 1024
MAX_SUSPECTS: Final = 16
_START_S: Final = 30.0
_BAD_BATCH: Final = 400
_TOO_LARGE: Final = 413
_REACHED: Final = log_event.info("hub-reached-again: hub reached again after {failures} failed attempts")
_REFUSED: Final = log_event.error(
    "row-refused: the hub rejects {row}, kept in the outbox and not sent again: {reason}",
    "The hub will never accept this row; the others are sent. Compare the versions of both, then report this line.",
)
_SMALLER: Final = log_event.warning(
    "batch-too-large: the hub rejects large batches, new limit {bytes} bytes",
    "Nothing to do: a proxy in between has a low limit.",
)
_UNSHIPPED: Final = log_event.error(
    "rows-not-shipped: cannot ship {what}, they stay in the outbox: {error}",
    "Nothing is lost. Check the hub, the clocks, munge, the uid and the certificate: the error says which.",
)


class OutboxBatch(Protocol):
    """Rows that are sent together."""

    @property
    def rows(self) -> Sequence[Any]:
        """The rows in their order; `str` names one in a log."""
        ...

    def part(self, rows: Sequence[Any]) -> Self:
        """Return a batch of some of the rows."""
        ...


B = TypeVar("B", bound=OutboxBatch)


class OutboxReader(Protocol[B]):
    """The methods of an outbox that the shipper needs."""

    def take(self, max_bytes: int) -> B | None:
        """Return the oldest rows, which are kept until `ack`; None where there are none."""
        ...

    def ack(self, batch: B, rejected: Mapping[int, str]) -> Sequence[tuple[Any, str]]:
        """Remove the rows that the hub has; return the newly rejected rows, with the reasons."""
        ...


@dataclass(frozen=True, slots=True)
class ShipperStatus:
    """The shipper's health, for the exporter."""

    sent_rows: int = 0
    rejected_rows: int = 0
    failures: int = 0  # in a row; 0 when the hub was reached at the last attempt
    last_error: str = ""


class Shipper(Generic[B]):
    """Ships every `every_s` seconds, at once on `wake`; after failures with exponential backoff and full jitter.

    A busy hub names when to retry; agents that were postponed together do not retry together.
    """

    def __init__(
        self,
        outbox: OutboxReader[B],
        send: Callable[[Envelope, B], Ack],
        envelope: Envelope,
        clock: Clock,
        *,
        every_s: float,
        what: str = "hours",
        rng: random.Random | None = None,
    ) -> None:
        """`send` returns only with the hub's signed acknowledgement, or raises GpuwasteError; `what` names the rows."""
        self._what = what
        self._outbox = outbox
        self._send_rows = send
        self._envelope = envelope
        self._clock = clock
        self._every_s = every_s
        self._rng = rng or random.Random()  # noqa: S311 spreads load, keeps no secret
        self._max_bytes = MAX_BATCH_BYTES
        self._worker = Worker("shipper", self.step, clock, last=self._last)
        self._trouble = RepeatSuppressor()
        self._sent_rows = self._rejected_rows = 0
        self._put_offs = 0  # in a row

    @property
    def status(self) -> ShipperStatus:
        """The newest health; any thread may read it."""
        return ShipperStatus(self._sent_rows, self._rejected_rows, self._trouble.times, self._trouble.words)

    def start(self) -> None:
        """Start the thread. The first shipment is within half a minute, at a random moment, as nodes boot together."""
        self._worker.start(self._rng.uniform(0, min(_START_S, self._every_s)))

    def wake(self) -> None:
        """Ship now, without waiting: rows are due, or the agent stops."""
        self._worker.wake()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread, after a last attempt where the hub was reached before; remaining rows stay in the outbox."""
        self._worker.stop(timeout_s)

    def _last(self) -> None:
        if not self._trouble.times:
            self.step()

    def step(self) -> float:
        """Ship all pending rows and return the seconds until the next time. Raises nothing."""
        try:
            self._drain()
        except BusyError as error:
            return self._failed(str(error), self._put_off_s(error.retry_after_s))
        except RetryableWireError as error:
            return self._failed(str(error), self._backoff_s())
        except GpuwasteError as error:
            # Only an administrator's change helps: retry rarely, but do retry.
            return self._failed(str(error), self._rng.uniform(BACKOFF_MAX_S / 2, BACKOFF_MAX_S))
        except Exception as error:  # noqa: BLE001 a defect must not end the thread: rows wait safely in the outbox
            return self._failed(f"bug in gpuwaste, rows not sent: {type(error).__name__}: {error}", self._backoff_s())
        if failures := self._trouble.over():
            _REACHED.log(failures=failures)
        self._put_offs = 0
        return self._every_s

    def _drain(self) -> None:
        """Send batches until no rows are pending, or one where the agent stops; new rows may arrive meanwhile.

        Where the last attempt failed, a few rows test whether the hub is back: `wake` may cause that often.
        """
        going_on, most = True, MIN_BATCH_BYTES if self._trouble.times else self._max_bytes
        while going_on:
            going_on = not self._worker.stopping.is_set()
            room = most - len(self._envelope.sent_at(self._clock.utc_us()).line("0" * 32)) - 1
            batch = self._outbox.take(max_bytes=room)
            if batch is None:
                return
            try:
                self._send(batch)
            except RefusedError as error:
                if error.status not in {_BAD_BATCH, _TOO_LARGE}:
                    raise
                self._note_size(error)
                self._bisect(batch, error)
            most = self._max_bytes

    def _send(self, batch: B) -> None:
        ack = self._send_rows(self._envelope.sent_at(self._clock.utc_us()), batch)
        self._settle(batch, ack.rejected)
        self._sent_rows += ack.accepted

    def _settle(self, batch: B, rejected: dict[int, str]) -> None:
        for row, reason in self._outbox.ack(batch, rejected):
            _REFUSED.log(row=row, reason=reason)
        self._rejected_rows += len(rejected)

    def _bisect(self, batch: B, refusal: RefusedError) -> None:
        """Find the rows because of which the hub rejects the entire batch, and send the others.

        A row is rejected only where the hub has accepted another of the same batch: where it accepts none, the rows are
        not the cause (a wrong cluster name, a foreign service), and the error is raised with every row kept. The order
        is random, so that the next attempt begins with other rows.
        """
        rows = list(batch.rows)
        self._rng.shuffle(rows)
        waiting = self._halves(batch, rows)
        suspects: list[tuple[Any, str]] = []
        any_taken = False
        while waiting and (any_taken or len(suspects) < MAX_SUSPECTS):
            part = waiting.pop()
            try:
                self._send(part)
                any_taken = True
            except RefusedError as error:
                if error.status not in {_BAD_BATCH, _TOO_LARGE}:
                    raise
                if len(part.rows) == 1:
                    suspects.append((part.rows[0], str(error)))
                else:
                    waiting += self._halves(batch, part.rows)
        if not any_taken:
            raise refusal
        for row, reason in suspects:
            self._settle(batch.part([row]), {2: reason})

    @staticmethod
    def _halves(batch: B, rows: Sequence[Any]) -> list[B]:
        middle = len(rows) // 2
        return [batch.part(half) for half in (rows[:middle], rows[middle:]) if half]

    def _note_size(self, error: RefusedError) -> None:
        """Reduce the batch size for this hub."""
        if error.status == _TOO_LARGE and self._max_bytes > MIN_BATCH_BYTES:
            self._max_bytes = max(MIN_BATCH_BYTES, self._max_bytes // 2)
            _SMALLER.log(bytes=self._max_bytes)

    def _failed(self, message: str, wait_s: float) -> float:
        """Record a failed attempt; the same message is logged once."""
        if self._trouble.news(message):
            _UNSHIPPED.log(what=self._what, error=message)
        return wait_s

    def _put_off_s(self, retry_after_s: float) -> float:
        """Return the wait that a busy hub requests plus up to as much again, twice that each further time."""
        self._put_offs = min(self._put_offs + 1, 20)
        first = min(BACKOFF_MAX_S / 2, max(1.0, retry_after_s))
        return self._rng.uniform(first, backoff_s(self._put_offs + 1, first, BACKOFF_MAX_S))

    def _backoff_s(self) -> float:
        return self._rng.uniform(0, backoff_s(self._trouble.times + 1, BACKOFF_FIRST_S, BACKOFF_MAX_S))

"""Writer: a thread that moves verdicts from the journal's spool into the durable outbox."""

import json
import os
import queue
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

import msgspec

from gpuwaste.advice.verdicts.verdict_batch import MAX_VERDICT_BYTES, VerdictLine
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.submit_server import Server
from gpuwaste.advisor.verdict_journal import VerdictJournal
from gpuwaste.advisor.verdict_outbox import SHIP_EVERY_S, Chunk, VerdictOutbox, VerdictShipping
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError, StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.typed import convert, decoder
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.verdict import is_token

CHUNK: Final = 200  # verdicts of a transaction: the loop can run between two of them
_PAUSE_S: Final = 0.002
_ANSWER_S: Final = 5.0
_Swapped = tuple[Path, int, list[bytes]]
_IN_SPOOL: Final = log_event.error(
    "verdicts-in-spool: verdicts stay in the spool: {error}",
    "The outbox of verdicts cannot be written: check the disk of `[advisor] state_dir`. The advisor retries.",
)


class Writer(Part):
    """Moves verdicts every `every_s` seconds, run by `worker`; `call` runs work on the loop's thread."""

    def __init__(
        self,
        journal: VerdictJournal,
        outbox: VerdictOutbox,
        call: Callable[[Callable[[], None]], None],
        clock: Clock,
        *,
        every_s: float,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self.bad_lines = 0
        self._journal = journal
        self._outbox = outbox
        self._call = call
        self._clock = clock
        self._every_s = every_s
        self._moved = moved
        self._trouble = RepeatSuppressor()
        self._asked: queue.SimpleQueue[_Swapped] | None = None
        self.worker = Worker("writer", self.step, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor."""
        return cls(
            parts.get(VerdictJournal), parts.get(VerdictOutbox), parts.get(Server).call, parts.get(AdvisorPorts).clock,
            every_s=SHIP_EVERY_S, moved=parts.get(VerdictShipping).shipper.wake,
        )  # fmt: skip

    def close(self) -> None:
        """Move the last file."""
        self._journal.close()
        self.worker.turn()

    def step(self) -> float:
        """Swap the journal's file and move its verdicts; what cannot be moved is read again at the next start."""
        try:
            self._swap()
            self.move()
            self._trouble.over()
        except GpuwasteError as error:
            if self._trouble.news(str(error)):
                _IN_SPOOL.log(error=error)
        return self._every_s

    def move(self) -> int:
        """Move the files that are no longer written to; return how many verdicts they held. Raises StoreError."""
        count = 0
        for path in self._journal.left():
            try:
                data = path.read_bytes()
            except OSError as error:
                raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
            count += self._put(data)
            path.unlink(missing_ok=True)
        if count:
            self._moved()
        return count

    def _swap(self) -> None:
        """Have the loop continue in a new file, if it has written to the old one."""
        if self._asked is None:
            if not self._journal.count:
                return
            path, number = self._journal.open_next()
            answers: queue.SimpleQueue[_Swapped] = queue.SimpleQueue()
            self._call(lambda: answers.put(self._journal.swap(path, number)))
            self._asked = answers
        try:
            _, old, held = self._asked.get(timeout=_ANSWER_S)
        except queue.Empty:
            raise StoreError(f"{self._journal.directory}: the loop does not answer") from None
        self._asked = None  # no file is touched before the loop has reported which one it has left
        os.close(old)
        if held:
            try:
                self._put(b"".join(held))
            except StoreError:
                self._call(lambda: self._journal.hold(held))
                raise

    def _put(self, data: bytes) -> int:
        """Store the lines of a file in chunks; invalid lines are counted. Raises StoreError."""
        chunk, count = Chunk(), 0
        for line in data.split(b"\n"):
            if line and not add_line(chunk, line, self._outbox.day_of):
                self.bad_lines += 1
            if len(chunk.rows) >= CHUNK:
                count += len(chunk.rows)
                self._outbox.put(chunk)
                chunk = Chunk()
                self._clock.wait(self.worker.stopping, _PAUSE_S)
        self._outbox.put(chunk)
        return count + len(chunk.rows)


def add_line(chunk: Chunk, line: bytes, day_of: Callable[[int], str]) -> bool:
    """Add a line to a chunk; false where it is not a complete verdict. The hub checks each part of it again.

    A reject counts in the user's budget if it was the action, an override if it held something back.
    """
    try:
        row = _read(line)
    except (ValueError, RecursionError):
        return False
    if not is_token(row.id) or len(line) > MAX_VERDICT_BYTES:
        return False
    chunk.rows.append(VerdictLine(row.id, line))
    chunk.newest_utc_us = max(chunk.newest_utc_us, row.at_utc_us)
    if row.action == "reject":
        chunk.spent.append((row.id, "reject", row.user, day_of(row.at_utc_us)))
    if row.override and row.held == "override":
        chunk.spent.append((row.id, "override", row.user, day_of(row.at_utc_us)))
    return True


class _SpoolLine(msgspec.Struct):
    """The fields of a Verdict that the writer needs: a line whose other fields are bad is kept, the hub checks them."""

    id: str
    at_utc_us: int
    user: str
    action: str = ""
    held: str = ""
    override: str = ""


_decode: Final = decoder(_SpoolLine).decode


def _read(line: bytes) -> _SpoolLine:
    """Read a line. Raises ValueError, RecursionError."""
    try:
        return _decode(line)
    except msgspec.DecodeError:  # msgspec rejects half of a surrogate pair, json accepts it
        return convert(json.loads(line), _SpoolLine)

"""Progress of many cases on stderr: how many, how fast, how long still, how many failed."""

import sys
import time
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY_S: Final = {True: 0.2, False: 30.0}  # by whether it is a terminal


class CaseProgress:
    """Counts cases and shows them: one line that is rewritten on a terminal, a line now and then elsewhere."""

    def __init__(
        self, total: int, *, done: int = 0, stream: TextIO | None = None, clock: "Callable[[], float]" = time.monotonic
    ) -> None:
        """Begin with `done` of `total` cases that an earlier run has ended."""
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._total, self._before, self._done, self._failed = total, done, done, 0
        self._begin = clock()
        self._shown = self._begin

    @property
    def failed(self) -> int:
        """How many cases failed."""
        return self._failed

    @property
    def done(self) -> int:
        """How many cases have ended, earlier ones and failed ones included."""
        return self._done

    def ended(self, *, failed: bool) -> None:
        """Count a case."""
        self._done += 1
        self._failed += failed
        terminal = self._stream.isatty()
        if self._clock() - self._shown >= _EVERY_S[terminal] or self._done == self._total:
            self._shown = self._clock()
            self._stream.write(f"\r\x1b[K{self.line()}" if terminal else f"{self.line()}\n")
            self._stream.flush()

    def line(self) -> str:
        """Return the state in words."""
        took = max(self._clock() - self._begin, 1e-9)
        rate = (self._done - self._before) / took
        left = "" if not rate or self._done == self._total else f", {_span((self._total - self._done) / rate)} left"
        failed = f", {self._failed} failed" if self._failed else ""
        return f"gpuwaste: {self._done} of {self._total} cases, {rate:.3g}/s{left}{failed}"

    def end(self) -> None:
        """Leave the line as it is."""
        if self._stream.isatty():
            self._stream.write("\n")


def _span(seconds: float) -> str:
    from gpuwaste.show.cells import short

    return short(seconds)

"""The daemons' log: one line per event on stderr, without control characters, an equal line once a minute.

Under systemd (`JOURNAL_STREAM` names our stderr) a line begins with its priority, `<4>` for a warning, see
sd-daemon(3); elsewhere with the level's name.
"""

import faulthandler
import logging
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final, TextIO

from gpuwaste.core.text import harmless
from gpuwaste.core.units import MINUTE_S

LONGEST: Final = 4096  # characters of a line; longer ones are cut
_KNOWN: Final = 256  # different lines of the last minute that are remembered
_PRIORITIES: Final = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_DEBUG: Final = 7
_QUIETER: Final = {"uvicorn.error": logging.WARNING}  # our own lines log the same


def set_up_logging(stream: TextIO | None = None) -> None:
    """Send this process' log to `stream` (stderr), once.

    Where a watchdog ends the process (SIGABRT), the stack of each thread is written to stderr as well.
    """
    faulthandler.enable()
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, LineHandler)]:
        root.removeHandler(handler)
    root.addHandler(LineHandler(stream or sys.stderr))
    root.setLevel(logging.INFO)
    for name, level in _QUIETER.items():
        logging.getLogger(name).setLevel(level)


class LineHandler(logging.Handler):
    """Writes records as single lines; the same line again within a minute is counted, and the count is logged later.

    The count is written before the next record that is logged after that minute, or at the end.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        every_s: float = MINUTE_S,
        mono_s: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._stream = stream
        self._journal = is_journal(stream)
        self._every_s = every_s
        self._mono_s = mono_s
        self._said: OrderedDict[tuple[int, str], list[float]] = OrderedDict()  # line -> [first time, repeats]

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or count it. A stream that cannot be written does not stop the caller."""
        try:
            line = one_line(record)
            now = self._mono_s()
            self._tell(lambda first: now - first >= self._every_s)
            known = self._said.get((record.levelno, line))
            if known is not None:
                known[1] += 1
                return
            while len(self._said) >= _KNOWN:
                self._let_go()
            self._said[record.levelno, line] = [now, 0]
            self._write(record.levelno, line)
        except Exception:  # noqa: BLE001 logging's own rule: report where possible, never raise
            self.handleError(record)

    def close(self) -> None:
        """Write the counts that are left."""
        try:
            self._tell(lambda _: True)
        except (OSError, ValueError):
            pass  # the stream is closed
        finally:
            super().close()

    def _tell(self, over: Callable[[float], bool]) -> None:
        while self._said and over(next(iter(self._said.values()))[0]):
            self._let_go()

    def _let_go(self) -> None:
        (level, line), (_, repeats) = self._said.popitem(last=False)
        if repeats:
            self._write(level, f"{line} (and {repeats:.0f} times more within a minute)")

    def _write(self, level: int, line: str) -> None:
        start = f"<{priority(level)}>" if self._journal else f"{logging.getLevelName(level)} "
        self._stream.write(f"{start}{line}\n")
        self._stream.flush()


def one_line(record: logging.LogRecord) -> str:
    """Return a record as one line without control characters: it may contain text of Slurm, users and peers.

    It begins with the id of a declared event (core.log_event), else with the logger's name.
    """
    text = f"{getattr(record, 'event', record.name)}: {record.getMessage()}"
    if record.exc_info and record.exc_info[1] is not None:
        text = f"{text}: {_trace(record.exc_info[1])}"
    text = text[: LONGEST - 3] + "..." if len(text) > LONGEST else text
    return harmless(text)


def priority(level: int) -> int:
    """Return syslog's number for a level: 3 error, 4 warning, 6 information."""
    return next((number for least, number in _PRIORITIES if level >= least), _DEBUG)


def is_journal(stream: TextIO) -> bool:
    """Return whether the stream is the one that systemd named: a daemon's output may have been redirected since."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        there = os.fstat(stream.fileno())
        return (there.st_dev, there.st_ino) == (int(device), int(inode))
    except (OSError, ValueError):
        return False


def _trace(error: BaseException) -> str:
    """Return an error and its traceback, innermost last."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{Path(code.co_filename).name}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return f"{type(error).__name__}: {error} (at {' > '.join(places[-12:]) or 'unknown'})"

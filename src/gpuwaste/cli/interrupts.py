"""Ctrl-C in a command: one KeyboardInterrupt in the main thread, which nothing swallows; a second one ends at once.

Standard streams may fail: a full disk, a pipe that nobody reads.
"""

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from opcode import opmap  # here: an import in a signal handler may find itself half done
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from types import FrameType

EXIT_INTERRUPTED: Final = 130
_ONE_PRESS_S: Final = 1.0  # a terminal and a wrapper may both send the signal for one press
_AGAIN_S: Final = 0.01  # a finalizer or a callback has ended by then, or it is tried again
# What C calls through ctypes: an exception there is dropped, and C continues with an undefined result.
_CALLED_FROM_C: Final = frozenset(
    {
        ("xgboost.core", "_next_wrapper"),
        ("xgboost.core", "_reset_wrapper"),
        ("xgboost.core", "_log_callback"),
        ("llvmlite.binding.executionengine", "_raw_object_cache_notify"),
        ("llvmlite.binding.executionengine", "_raw_object_cache_getbuffer"),
    }
)
# DuckDB imports pandas with each value of a statement, and treats every exception there as "is not installed".
_IMPORT: Final = "importlib._bootstrap", "_find_and_load"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a command that keeps a part of its work; the message is where that is and what goes on from there."""


class Interrupts:
    """Raises KeyboardInterrupt at the first SIGINT and remembers that; what follows cleans up.

    Python drops an exception that is raised in a finalizer or a callback of C: the signal is sent again then, a moment
    later. Where the exception would harm the C code that called, it is raised only after that code has its result.
    """

    def __init__(self) -> None:
        self._first_s: float | None = None
        self._last_resort = sys.unraisablehook

    @property
    def seen(self) -> bool:
        """Return whether there was one: an error that follows is its consequence."""
        return self._first_s is not None

    def handle(self, _number: int, frame: "FrameType | None") -> None:
        """Handle one SIGINT. Raises KeyboardInterrupt."""
        now = time.monotonic()
        if self._first_s is None:
            if _called_from_c(frame):
                _press_again()
                return
            self._first_s = now
            raise KeyboardInterrupt
        if now - self._first_s > _ONE_PRESS_S:
            os._exit(EXIT_INTERRUPTED)

    def dropped(self, told: Any) -> None:
        """Handle an exception that Python dropped."""
        if not issubclass(told.exc_type, KeyboardInterrupt):
            self._last_resort(told)
            return
        self._first_s = None
        _press_again()


def _called_from_c(frame: "FrameType | None") -> bool:
    """Return whether a function of _CALLED_FROM_C is running, or an import that C code began."""
    while frame is not None:
        place = frame.f_globals.get("__name__"), frame.f_code.co_name
        if place in _CALLED_FROM_C or (place == _IMPORT and not _imports(frame.f_back)):
            return True
        frame = frame.f_back
    return False


def _imports(caller: "FrameType | None") -> bool:
    """Return whether a frame is at an import statement, or is the import system's own."""
    if caller is None:
        return False
    if caller.f_globals.get("__name__") == _IMPORT[0]:
        return True
    return caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_NAME"]


def _press_again() -> None:
    """Send this process SIGINT, a moment later: raised here and now, it would be dropped too."""
    main = threading.main_thread().ident
    assert main is not None  # noqa: S101 the main thread runs

    def press() -> None:
        time.sleep(_AGAIN_S)
        signal.pthread_kill(main, signal.SIGINT)

    _thread.start_new_thread(press, ())  # takes no lock, as threading.Thread does: a finalizer may run within one


@contextmanager
def interruptible(*, last: bool) -> Iterator[Interrupts]:
    """Handle SIGINT in the block, where Python's own handler would: not where it is ignored, or a daemon has another.

    With `last` the process only ends after the block: SIGINT then ends it at once.
    """
    found = Interrupts()
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield found
        return
    hook, sys.unraisablehook = sys.unraisablehook, found.dropped
    signal.signal(signal.SIGINT, found.handle)
    try:
        yield found
    finally:
        sys.unraisablehook = hook
        if signal.getsignal(signal.SIGINT) == found.handle:
            signal.signal(signal.SIGINT, signal.SIG_DFL if last else signal.default_int_handler)


def tell(text: str) -> None:
    """Print to stderr, where that can be written to; the exit code reports the same."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)


def drop(stream: TextIO) -> None:
    """Discard what a stream still buffers, which Python would write at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)

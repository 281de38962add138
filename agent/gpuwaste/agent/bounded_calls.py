"""Calls that may hang or fail: each loses only its own values, and a failed collector is retried with growing waits.

One thread makes all calls. While one of them hangs the next fail at once; a result after the limit is dropped, and then
the thread is used again.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from gpuwaste.agent.readings import GpuCollector, GpuScan
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.core.worker import backoff_s
from gpuwaste.ledger.gpu_sample import UnknownReason

LIMIT_S: Final = 5.0
_T = TypeVar("_T")
_FAILED: Final = log_event.warning(
    "collector-failed: collector {about}: {error}",
    "A collector (`nvml`, `amd`, `intel`, `pcp`, `host`) cannot read. Its GPU time is unknown until it works again "
    "(`dcgm`, `rapl`: only what they measure): "
    "[troubleshooting](../how-to/troubleshooting.md).",
)
_MAX_WAIT_S: Final = 300.0


class CollectorError(GpuwasteError):
    """A collector could not read; `reason` is the key under which the time is unknown."""

    def __init__(self, message: str, reason: UnknownReason = UnknownReason.DRIVER) -> None:
        super().__init__(message)
        self.reason = reason


class _BoundedCall(Generic[_T]):
    """One call on the thread, and its result."""

    def __init__(self, call: Callable[[], _T]) -> None:
        self._call = call
        self._found: list[_T] = []
        self._error: Exception | None = None
        self.done = threading.Event()

    def run(self) -> None:
        """Make the call."""
        try:
            self._found.append(self._call())
        except Exception as error:  # noqa: BLE001 raised again in the waiting thread
            self._error = error
        self.done.set()

    def result(self) -> _T:
        """Return what the call returned, or raise what it raised; the call must be done."""
        if self._error is not None:
            raise self._error
        return self._found[0]


class BoundedThread:
    """Makes calls on one thread and waits at most `limit_s` for each. For one caller thread."""

    def __init__(self, name: str, limit_s: float, *, late: str, hangs: str) -> None:
        """`late` is the error of a call that takes too long, `hangs` that of one while an earlier call still runs."""
        self._name = name
        self._limit_s = limit_s
        self._said_late = late
        self._said_hangs = hangs
        self._task: _BoundedCall[Any] | None = None
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self.late: _BoundedCall[Any] | None = None
        """The call that did not return in time."""

    @property
    def started(self) -> bool:
        """Whether a call was ever made."""
        return self._thread is not None

    def call(self, call: Callable[[], _T]) -> _T:
        """Return the result of `call`. Raises CollectorError where that takes too long, or what `call` raises."""
        if self.late is not None and not self.late.done.is_set():
            raise CollectorError(self._said_hangs)
        self.late = None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        task = _BoundedCall(call)
        with self._wake:
            self._task = task
            self._wake.notify()
        if not task.done.wait(self._limit_s):
            self.late = task
            raise CollectorError(self._said_late)
        return task.result()

    def _run(self) -> None:
        while True:
            with self._wake:
                while self._task is None:
                    self._wake.wait()
                task, self._task = self._task, None
            task.run()


class BoundedCollector:
    """Runs a collector's scan and close on a separate thread, which a vendor's library may block."""

    def __init__(self, inner: GpuCollector, limit_s: float = LIMIT_S) -> None:
        self.name = inner.name
        self._inner = inner
        self._thread = BoundedThread(
            f"gpu-{inner.name}",
            limit_s,
            late=f"{inner.name}: the library did not answer for {limit_s:g} s: check the driver (dmesg)",
            hangs=f"{inner.name}: the library has not returned from an earlier call: check the driver (dmesg)",
        )

    def scan(self) -> GpuScan:
        """Read every GPU once. Raises CollectorError on a timeout of the library, or as the inner collector does."""
        return self._thread.call(self._inner.scan)

    def close(self) -> None:
        """Close the library, unless a call hangs. Never raises."""
        if self._thread.started:
            with contextlib.suppress(CollectorError):
                self._thread.call(self._inner.close)


class Guard(Generic[_T]):
    """Calls `read`; after a failure it waits one interval, then two, four, up to five minutes."""

    def __init__(self, name: str, read: Callable[[], _T], clock: Clock, events: EventLog, interval_s: float) -> None:
        self.name = name
        self.ok = False
        self.duration_s = 0.0
        self.reason = UnknownReason.NONE  # why there is no reading
        self.failed_total = 0  # reads since the start that failed
        self._read = read
        self._clock = clock
        self._events = events
        self._first_wait_s = interval_s
        self._failures = 0
        self._not_before_us = 0

    def read(self) -> _T | None:
        """Return what was read, or None where that failed or it is too early to try again."""
        if self._failures and self._clock.mono_us() < self._not_before_us:
            return None
        began = time.perf_counter()
        try:
            found = self._read()
        except CollectorError as error:
            self._failed(error.reason, str(error))
            return None
        except Exception as error:  # noqa: BLE001 a defect of one collector must not stop the others
            self._failed(UnknownReason.DRIVER, f"defect in the collector: {type(error).__name__}: {error}")
            return None
        finally:
            self.duration_s = time.perf_counter() - began
        self.ok, self.reason, self._failures = True, UnknownReason.NONE, 0
        self._events.over(self.name)
        return found

    def retry_now(self) -> None:
        """Forget earlier failures: the cause was dealt with."""
        self._failures = 0

    def _failed(self, reason: UnknownReason, message: str) -> None:
        self.ok, self.reason = False, reason
        self._failures += 1
        self.failed_total += 1
        wait_s = backoff_s(self._failures, self._first_wait_s, _MAX_WAIT_S)
        # A little less than whole intervals, so that the wait does not skip one more tick.
        self._not_before_us = self._clock.mono_us() + int((wait_s - self._first_wait_s / 2) * 1e6)
        self._events.trouble(_FAILED, self.name, error=message)

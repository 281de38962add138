"""Calls on a thread of their own, with a time limit: what hangs costs its own values alone.

One thread makes all calls. While one of them hangs the next fail at once; what it returns after the limit is dropped,
and then the thread is asked again.
"""

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from gpuwaste.agent.errors import CollectorError
from gpuwaste.agent.model import GpuCollector, GpuScan

LIMIT_S: Final = 5.0
_T = TypeVar("_T")


class _BoundedCall(Generic[_T]):
    """One call on the thread, and what became of it."""

    def __init__(self, call: Callable[[], _T]) -> None:
        self._call = call
        self._found: list[_T] = []
        self._error: Exception | None = None
        self.done = threading.Event()

    def run(self) -> None:
        """Make the call."""
        try:
            self._found.append(self._call())
        except Exception as error:  # noqa: BLE001 raised again by whoever waits for it
            self._error = error
        self.done.set()

    def result(self) -> _T:
        """Return what the call returned, or raise what it raised; it is done."""
        if self._error is not None:
            raise self._error
        return self._found[0]


class BoundedThread:
    """Makes calls on one thread, each waited for `limit_s` at most. One thread asks it."""

    def __init__(self, name: str, limit_s: float, *, late: str, hangs: str) -> None:
        """`late` is the error of a call that takes too long, `hangs` that of one while an earlier one is not over."""
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
        """Return what `call` returns. Raises CollectorError where that takes too long, or what `call` raises."""
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
    """Runs a collector's scan and close on a thread of their own: one that a vendor's library may keep."""

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
        """Read every GPU once. Raises CollectorError where the library does not answer in time, or as the inner one."""
        return self._thread.call(self._inner.scan)

    def close(self) -> None:
        """Close the library; one that hangs stays as it is. Never raises."""
        if self._thread.started:
            with contextlib.suppress(CollectorError):
                self._thread.call(self._inner.close)

"""A collector on a thread of its own: who waits, for how long, and what becomes of a late answer."""

import threading
from collections.abc import Callable

import pytest
from tests.unit.agent.fakes import a_scan

from gpuwaste.agent.bounded_calls import BoundedCollector, CollectorError
from gpuwaste.agent.readings import GpuReading, GpuScan
from gpuwaste.testing.patience import patient

SCAN = a_scan(GpuReading("GPU-0", util_pct=50.0), source="slow")


class Slow:
    """A collector whose calls return when they are let go, and which notes the threads that make them."""

    name = "slow"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.answer: GpuScan | Exception = SCAN
        self.threads: set[str] = set()
        self.calls: list[str] = []
        self.returned = threading.Semaphore(0)

    def _call(self, name: str) -> None:
        self.threads.add(threading.current_thread().name)
        self.calls.append(name)
        self.go.wait()
        self.returned.release()

    def scan(self) -> GpuScan:
        self._call("scan")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self._call("close")


def error_of(call: Callable[[], object]) -> str:
    """Return the words of the CollectorError that a call must raise."""
    with pytest.raises(CollectorError) as caught:
        call()
    return str(caught.value)


def test_one_thread_makes_all_calls_and_errors_come_through() -> None:
    """Scans and close run on the library's thread, what it returns and what it raises reaches the caller."""
    inner = Slow()
    bounded = BoundedCollector(inner)
    bounded.close()
    assert inner.calls == []
    assert bounded.scan() is SCAN
    inner.answer = CollectorError("no driver")
    assert error_of(bounded.scan) == "no driver"
    inner.answer = ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError):
        bounded.scan()
    bounded.close()
    assert (inner.calls, inner.threads) == (["scan", "scan", "scan", "close"], {"gpu-slow"})


def test_a_hang_is_waited_for_once_and_its_late_answer_is_dropped() -> None:
    """While a call hangs no second one is made, close does not raise, and the next scan after it is a new one."""
    inner = Slow()
    bounded = BoundedCollector(inner, limit_s=0.05)
    inner.go.clear()
    assert "did not answer for 0.05 s" in error_of(bounded.scan)
    assert "has not returned from an earlier call" in error_of(bounded.scan)
    bounded.close()
    assert inner.calls == ["scan"]
    stale, inner.answer = inner.answer, a_scan(GpuReading("GPU-1", util_pct=1.0), source="slow")
    inner.go.set()
    assert inner.returned.acquire(timeout=patient(10))
    late = bounded._thread.late
    assert late is not None
    assert late.done.wait(10)
    assert bounded.scan() is inner.answer is not stale


def test_a_close_that_hangs_does_not_raise() -> None:
    """The sampling thread goes on when the library does not shut down."""
    inner = Slow()
    bounded = BoundedCollector(inner, limit_s=0.05)
    bounded.scan()
    inner.go.clear()
    bounded.close()
    assert "has not returned" in error_of(bounded.scan)
    inner.go.set()

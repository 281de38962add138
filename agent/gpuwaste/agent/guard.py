"""A collector that may fail: its failure stays its own, and it is asked again with growing waits."""

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from gpuwaste.agent.errors import CollectorError
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.core.worker import backoff_s
from gpuwaste.ledger.sample import UnknownReason

_FAILED: Final = log_event.warning(
    "collector-failed: collector {about}: {error}",
    "A collector (`nvml`, `amd`, `intel`, `pcp`, `host`) cannot read. Its GPU time is unknown until it works again "
    "(`dcgm`, `rapl`: only what they measure): "
    "[troubleshooting](../how-to/troubleshooting.md).",
)

_T = TypeVar("_T")
_MAX_WAIT_S: Final = 300.0


class Guard(Generic[_T]):
    """Calls `read` unless it failed a short while ago: after one interval, then two, four, up to five minutes."""

    def __init__(self, name: str, read: Callable[[], _T], clock: Clock, events: EventLog, interval_s: float) -> None:
        self.name = name
        self.ok = False
        self.duration_s = 0.0
        self.reason = UnknownReason.NONE  # why there is nothing
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
        """Forget earlier failures: what was wrong has been seen to."""
        self._failures = 0

    def _failed(self, reason: UnknownReason, message: str) -> None:
        self.ok, self.reason = False, reason
        self._failures += 1
        self.failed_total += 1
        wait_s = backoff_s(self._failures, self._first_wait_s, _MAX_WAIT_S)
        # A little less than whole intervals, so that the wait does not cost one tick more.
        self._not_before_us = self._clock.mono_us() + int((wait_s - self._first_wait_s / 2) * 1e6)
        self._events.trouble(_FAILED, self.name, error=message)

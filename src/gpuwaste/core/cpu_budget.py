"""CpuBudget: how much CPU one question may take; checked between steps that are bounded themselves."""

import time
from typing import Final, Protocol

from gpuwaste.core.errors import GpuwasteError


class NotReadError(GpuwasteError):
    """A text takes more CPU than the question may take."""


class ReadingBudget(Protocol):
    """What a reader asks between two steps."""

    def check(self) -> None:
        """Raise NotReadError where nothing is left."""
        ...


class CpuBudget:
    """CPU seconds of the thread that makes it, counted from then on: waiting, and other threads, cost nothing."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.thread_time() + seconds

    def check(self) -> None:
        """Raise NotReadError where nothing is left."""
        if time.thread_time() > self._until:
            raise NotReadError(f"reading takes more than {self._seconds * 1e3:g} ms of CPU")


class _Unlimited:
    def check(self) -> None:
        """Let it go on."""


UNLIMITED: Final[ReadingBudget] = _Unlimited()

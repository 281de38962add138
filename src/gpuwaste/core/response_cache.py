"""Answers that are kept for a while, because to make them again costs nodes or the store much."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.core.clock import Clock

_MOST_KEPT_B: Final = 32 << 20


@dataclass(slots=True)
class _Making:
    """An answer that is being made, and how many wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    readers: int = 0


class ResponseCache:
    """Packed answers, the least used dropped first; any thread."""

    def __init__(self, clock: Clock, most_b: int = _MOST_KEPT_B) -> None:
        self._clock = clock
        self._most_b = most_b
        self._size_b = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[bytes, int]] = OrderedDict()
        self._making: dict[Hashable, _Making] = {}

    def get(self, key: Hashable) -> bytes | None:
        """Return an answer that is not too old."""
        with self._lock:
            answer, until_us = self._kept.get(key, (None, 0))
            if answer is None or until_us < self._clock.mono_us():
                return None
            self._kept.move_to_end(key)
            return answer

    def keep(self, key: Hashable, answer: bytes, seconds: float) -> None:
        """Keep an answer for so long, unless it is too large to be kept beside others."""
        with self._lock:
            self._size_b -= len(self._kept.pop(key, (b"", 0))[0])
            if len(answer) > self._most_b // 4:
                return
            self._kept[key] = (answer, self._clock.mono_us() + int(seconds * 1e6))
            self._size_b += len(answer)
            while self._size_b > self._most_b:
                _, (dropped, _) = self._kept.popitem(last=False)
                self._size_b -= len(dropped)

    @contextmanager
    def turn(self, key: Hashable) -> Iterator[None]:
        """Wait for whoever makes the answer of a key: in a turn, what is not kept is made and kept.

        What is raised in a turn is its holder's alone: the next one tries again.
        """
        with self._lock:
            making = self._making.setdefault(key, _Making())
            making.readers += 1
        try:
            with making.lock:
                yield
        finally:
            with self._lock:
                making.readers -= 1
                if not making.readers:
                    del self._making[key]

    def made(self, key: Hashable, seconds: float, make: Callable[[], bytes]) -> bytes:
        """Return a kept answer, or make and keep it, in the turn of the key."""
        with self.turn(key):
            kept = self.get(key)
            if kept is None:
                kept = make()
                self.keep(key, kept, seconds)
            return kept

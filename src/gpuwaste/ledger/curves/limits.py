"""What curves may cost: how much users may make agents work."""

import threading
from collections import deque
from typing import Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.refusal import TOO_MANY, Refusal

_PER_MINUTE: Final = 120
_MINUTE_US: Final = 60_000_000


class QuestionBudget:
    """How many questions to nodes a user may cause in a minute; any thread."""

    def __init__(self, clock: Clock, most: int = _PER_MINUTE) -> None:
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._asked: dict[str, deque[int]] = {}

    def take(self, user: str, questions: int) -> None:
        """Count questions, one at least, of a user's. Raises Refusal 429 where the minute has no room for them."""
        now_us = self._clock.mono_us()
        with self._lock:
            for name in [name for name, times in self._asked.items() if times[-1] < now_us - _MINUTE_US]:
                del self._asked[name]
            times = self._asked.setdefault(user, deque())
            while times and times[0] < now_us - _MINUTE_US:
                times.popleft()
            if times and len(times) + questions > self._most:
                words = f"at most {self._most} questions to nodes per minute for one user: retry later"
                raise Refusal(TOO_MANY, words, retry_after=1 + (times[0] + _MINUTE_US - now_us) // 1_000_000)
            times.extend([now_us] * questions)

"""What curves may cost: answers that are kept, and how much users may make agents work."""

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final

from gpuwaste.core.clock import Clock
from gpuwaste.hub.refusal import TOO_MANY, Refusal

_MOST_KEPT_B: Final = 32 << 20
_PER_MINUTE: Final = 120
_MINUTE_US: Final = 60_000_000


class KeptAnswers:
    """Packed answers, the least used dropped first; any thread."""

    def __init__(self, clock: Clock, most_b: int = _MOST_KEPT_B) -> None:
        self._clock = clock
        self._most_b = most_b
        self._size_b = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[bytes, int]] = OrderedDict()

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

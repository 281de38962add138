"""Answers for several callers: cached for a while where they are expensive, made once for all who wait."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from gpuwaste.core.clock import Clock

_MOST_KEPT_B: Final = 32 << 20
MOST_TOGETHER: Final = 64  # requests answered together
Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Making:
    """An answer that is being made, and the number of callers that wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    readers: int = 0


class ResponseCache:
    """Packed answers, the least recently used dropped first; for any thread."""

    def __init__(self, clock: Clock, most_b: int = _MOST_KEPT_B) -> None:
        self._clock = clock
        self._most_b = most_b
        self._size_b = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[bytes, int]] = OrderedDict()
        self._making: dict[Hashable, _Making] = {}

    def get(self, key: Hashable) -> bytes | None:
        """Return an answer that has not expired, else None."""
        with self._lock:
            answer, until_us = self._kept.get(key, (None, 0))
            if answer is None or until_us < self._clock.mono_us():
                return None
            self._kept.move_to_end(key)
            return answer

    def keep(self, key: Hashable, answer: bytes, seconds: float) -> None:
        """Keep an answer for `seconds`, unless it is larger than a quarter of the cache."""
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
        """Wait for the caller that makes the answer of a key; within the turn, a missing answer is made and kept.

        An error in a turn is raised only to its holder: the next one tries again.
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


@dataclass(slots=True)
class AskersTurn(Generic[Question, Answer]):
    """The task of one caller: answer `questions` into `answers`; without any, its own question is already answered."""

    question: Question
    done: bool = False
    questions: Sequence[Question] = ()
    answers: Mapping[Question, Answer] = field(default_factory=dict)

    @property
    def answer(self) -> Answer | None:
        """The answer to the caller's question; None where the caller that handled it had none."""
        return self.answers.get(self.question)


@dataclass(slots=True)
class _Kind(Generic[Question, Answer]):
    """Waiting questions of one kind, and the number of callers."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[AskersTurn[Question, Answer]] = field(default_factory=list)
    askers: int = 0


class RequestCoalescer(Generic[Question, Answer]):
    """Answers waiting questions of one kind together; for any thread."""

    def __init__(self, most: int = MOST_TOGETHER) -> None:
        """`most` questions are answered at a time."""
        self._most = most
        self._lock = threading.Lock()
        self._kinds: dict[Hashable, _Kind[Question, Answer]] = {}

    @contextmanager
    def turn(self, kind: Hashable, question: Question) -> Iterator[AskersTurn[Question, Answer]]:
        """Wait for the turn of a kind: the caller answers the waiting questions, or already has its answer by then.

        An error in a turn is raised only to its caller; the others whose questions it took get no answer.
        """
        asked = AskersTurn[Question, Answer](question)
        with self._lock:
            of_kind = self._kinds.setdefault(kind, _Kind())
            of_kind.waiting.append(asked)
            of_kind.askers += 1
        try:
            with of_kind.turn:
                if asked.done:
                    yield asked
                else:
                    yield from self._answered(of_kind, asked)
        finally:
            with self._lock:
                of_kind.askers -= 1
                if not of_kind.askers:
                    del self._kinds[kind]

    def _answered(
        self, of_kind: _Kind[Question, Answer], asked: AskersTurn[Question, Answer]
    ) -> Iterator[AskersTurn[Question, Answer]]:
        """Have the caller answer its question together with those that have waited longest."""
        with self._lock:
            others = [other for other in of_kind.waiting if other is not asked]
            together = [asked, *others[: self._most - 1]]
            of_kind.waiting = others[self._most - 1 :]
        asked.questions = [one.question for one in together]
        try:
            yield asked
        finally:
            for one in together:
                one.answers, one.done = asked.answers, True

    def ask(
        self, kind: Hashable, question: Question, answer: Callable[[Sequence[Question]], Mapping[Question, Answer]]
    ) -> Answer | None:
        """Return what `answer` returns in some caller's turn; None where it has none for this question."""
        with self.turn(kind, question) as turn:
            if turn.questions:
                turn.answers = answer(turn.questions)
        return turn.answer

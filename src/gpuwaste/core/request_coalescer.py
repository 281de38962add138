"""RequestCoalescer: questions that come while one of their kind is answered are answered together."""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

MOST: Final = 64  # questions answered together
Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass(slots=True)
class _CoalescedRequest(Generic[Question, Answer]):
    """One question; `done` once somebody has tried to answer it."""

    question: Question
    done: bool = False
    answer: Answer | None = None


@dataclass(slots=True)
class _Kind(Generic[Question, Answer]):
    """Questions of one kind that wait, and how many askers there are."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[_CoalescedRequest[Question, Answer]] = field(default_factory=list)
    askers: int = 0


class RequestCoalescer(Generic[Question, Answer]):
    """For any thread."""

    def __init__(self, most: int = MOST) -> None:
        """`most` questions are answered at a time."""
        self._most = most
        self._lock = threading.Lock()
        self._kinds: dict[Hashable, _Kind[Question, Answer]] = {}

    def ask(
        self, kind: Hashable, question: Question, answer: Callable[[Sequence[Question]], Mapping[Question, Answer]]
    ) -> Answer | None:
        """Return the answer; None where the questions that were answered together have none for this one.

        What `answer` raises reaches the one who called it; the others get None.
        """
        asked = _CoalescedRequest[Question, Answer](question)
        with self._lock:
            of_kind = self._kinds.setdefault(kind, _Kind())
            of_kind.waiting.append(asked)
            of_kind.askers += 1
        try:
            while not asked.done:
                with of_kind.turn:
                    if not asked.done:
                        self._answer(of_kind, answer)
            return asked.answer
        finally:
            with self._lock:
                of_kind.askers -= 1
                if not of_kind.askers:
                    del self._kinds[kind]

    def _answer(
        self,
        of_kind: _Kind[Question, Answer],
        answer: Callable[[Sequence[Question]], Mapping[Question, Answer]],
    ) -> None:
        """Answer the questions that have waited longest."""
        with self._lock:
            together, of_kind.waiting = of_kind.waiting[: self._most], of_kind.waiting[self._most :]
        try:
            answers = answer([asked.question for asked in together])
            for asked in together:
                asked.answer = answers.get(asked.question)
        finally:
            for asked in together:
                asked.done = True

"""RequestCoalescer: questions that come while one of their kind is answered are answered together."""

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

MOST: Final = 64  # questions answered together
Question = TypeVar("Question", bound=Hashable)
Answer = TypeVar("Answer")


@dataclass(slots=True)
class AskersTurn(Generic[Question, Answer]):
    """What one asker has to do: answer `questions` into `answers`; without any its own question was answered."""

    question: Question
    done: bool = False
    questions: Sequence[Question] = ()
    answers: Mapping[Question, Answer] = field(default_factory=dict)

    @property
    def answer(self) -> Answer | None:
        """The answer to the asker's question; None where whoever answered it with others has none."""
        return self.answers.get(self.question)


@dataclass(slots=True)
class _Kind(Generic[Question, Answer]):
    """Questions of one kind that wait, and how many askers there are."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    waiting: list[AskersTurn[Question, Answer]] = field(default_factory=list)
    askers: int = 0


class RequestCoalescer(Generic[Question, Answer]):
    """For any thread."""

    def __init__(self, most: int = MOST) -> None:
        """`most` questions are answered at a time."""
        self._most = most
        self._lock = threading.Lock()
        self._kinds: dict[Hashable, _Kind[Question, Answer]] = {}

    @contextmanager
    def turn(self, kind: Hashable, question: Question) -> Iterator[AskersTurn[Question, Answer]]:
        """Wait for the turn of a kind: the asker answers what waits, or has got its answer by then.

        What is raised in a turn is the asker's alone; the others whose questions these were get no answer.
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
        """Have the asker answer its question, and with it those that have waited longest."""
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
        """Return the answer that `answer` gives in some asker's turn; None where it has none for this question."""
        with self.turn(kind, question) as turn:
            if turn.questions:
                turn.answers = answer(turn.questions)
        return turn.answer

"""Questions that wait for an answer are answered together, each once, whatever one of them does."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from gpuwaste.core.response_cache import RequestCoalescer

ASKERS = 20
PATIENCE_S = 60


class Waiting:
    """Answers the first question when it is told to; the others have come by then."""

    def __init__(self) -> None:
        self.asked: RequestCoalescer[int, str] = RequestCoalescer(most=12)
        self.batches: list[list[int]] = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    def answer(self, questions: Sequence[int]) -> dict[int, str]:
        """Answer all but 7, of which nothing is known."""
        self.batches.append(list(questions))
        self.begun.set()
        assert self.go_on.wait(PATIENCE_S)
        return {question: f"answer {question}" for question in questions if question != 7}

    def ask(self, question: int) -> str | None:
        return self.asked.ask("kind", question, self.answer)

    def all_wait(self) -> bool:
        return sum(len(kind.waiting) for kind in self.asked._kinds.values()) == ASKERS - 1


def test_who_comes_meanwhile_is_answered_in_few_turns() -> None:
    """The first is answered alone, twelve next, then the rest; who gets no answer is told so."""
    waiting = Waiting()
    with ThreadPoolExecutor(ASKERS) as pool:
        first = pool.submit(waiting.ask, 0)
        assert waiting.begun.wait(PATIENCE_S)
        others = [pool.submit(waiting.ask, number) for number in range(1, ASKERS)]
        while not waiting.all_wait():
            threading.Event().wait(0.01)
        waiting.go_on.set()
        answers = [asked.result(PATIENCE_S) for asked in (first, *others)]
    assert answers == [None if number == 7 else f"answer {number}" for number in range(ASKERS)]
    assert list(map(len, waiting.batches)) == [1, 12, 7]
    assert not waiting.asked._kinds


def test_an_error_reaches_who_answered_and_ends_nobody_elses_wait() -> None:
    """The one whose turn it was gets the error, and the next question is answered."""
    asked: RequestCoalescer[int, str] = RequestCoalescer()

    def fails(_: Sequence[int]) -> dict[int, str]:
        raise ValueError("no store")

    with pytest.raises(ValueError, match="no store"):
        asked.ask("kind", 1, fails)
    assert asked.ask("kind", 2, lambda questions: dict.fromkeys(questions, "fine")) == "fine"


def test_other_kinds_do_not_wait() -> None:
    """While one kind of question is being answered another one is answered, too."""
    waiting = Waiting()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(waiting.ask, 0)
        assert waiting.begun.wait(PATIENCE_S)
        assert waiting.asked.ask("other", 1, lambda _: {1: "at once"}) == "at once"
        waiting.go_on.set()
        assert first.result(PATIENCE_S) == "answer 0"

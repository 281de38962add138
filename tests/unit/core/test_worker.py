"""A worker's thread does step after step and outlives a defect; waits have a bound; a bus tells all who asked."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.worker import Bus, Worker, backoff_s

WAIT_S = 30.0
LONG_S = 3600.0


class Steps:
    """A step that tells the test of each call, and answers what the test says."""

    def __init__(self) -> None:
        self.begun = queue.SimpleQueue[int]()
        self.waits = queue.SimpleQueue[float | Exception | None]()
        self.calls = 0
        self.ended = threading.Event()
        self.worker = Worker("tested", self.step, SystemClock(), last=self.ended.set)

    def step(self) -> float | None:
        """Tell the test, and do as it says."""
        self.calls += 1
        self.begun.put(self.calls)
        answer = self.waits.get(timeout=WAIT_S)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def next(self, answer: float | Exception | None) -> int:
        """Await a step and let it answer; return its number."""
        number = self.begun.get(timeout=WAIT_S)
        self.waits.put(answer)
        return number


@pytest.fixture
def steps() -> Iterator[Steps]:
    made = Steps()
    yield made
    made.worker.end()
    made.waits.put(None)
    made.worker.stop(WAIT_S)


def test_steps_follow_each_other(steps: Steps) -> None:
    """A step that returns 0 is followed by the next one at once."""
    steps.worker.start()
    assert [steps.next(0.0) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("wait_s", [LONG_S, None])
def test_a_wait_ends_when_it_is_woken(steps: Steps, wait_s: float | None) -> None:
    """However long the wait, or without an end: wake brings the next step."""
    steps.worker.start(wait_s)
    for number in (1, 2):
        steps.worker.wake()
        assert steps.next(wait_s) == number


def test_a_call_for_the_next_step_is_not_lost(steps: Steps) -> None:
    """Whoever wakes the thread while a step runs gets another step after it."""
    steps.worker.start()
    assert steps.begun.get(timeout=WAIT_S) == 1
    steps.worker.wake()
    steps.waits.put(None)
    assert steps.next(None) == 2


def test_stop_ends_a_wait_and_calls_the_last_work(steps: Steps) -> None:
    """No further step is done, the thread is over, and what is due at the end is done on it."""
    steps.worker.start()
    steps.next(LONG_S)
    steps.worker.stop(WAIT_S)
    assert (steps.worker.alive, steps.ended.is_set(), steps.calls) == (False, True, 1)


def test_stop_before_the_start_is_no_error(steps: Steps) -> None:
    """A worker that never ran ends."""
    steps.worker.stop()
    assert not steps.worker.alive


def test_a_defect_does_not_end_the_thread(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its place, and the next step is done."""
    steps.worker.start()
    steps.next(ZeroDivisionError("x"))
    steps.worker.wake()
    assert steps.next(None) == 2
    (record,) = caplog.records
    assert record.getMessage() == "step of thread tested skipped, traceback at the end of the line"
    assert record.exc_info is not None


def test_a_turn_is_one_step_of_the_caller(caplog: pytest.LogCaptureFixture) -> None:
    """It raises nothing either, and says when the next step is due."""
    divisors = [2, 0]
    worker = Worker("tested", lambda: 14 / divisors.pop(0), SystemClock())
    assert (worker.turn(), worker.turn()) == (7.0, 60.0)
    assert "step of thread tested skipped" in caplog.text


@pytest.mark.parametrize(("failures", "wait_s"), [(0, 5.0), (1, 5.0), (2, 10.0), (4, 40.0), (7, 300.0), (10**6, 300.0)])
def test_waits_double_up_to_a_bound(failures: int, wait_s: float) -> None:
    """From the first wait on, and however many failures there are."""
    assert backoff_s(failures, 5.0, 300.0) == wait_s


@dataclass(frozen=True)
class Ended:
    """Something ended."""

    number: int


@dataclass(frozen=True)
class EndedBadly(Ended):
    """A kind of its own."""


def test_handlers_get_their_type_in_the_order_of_subscription() -> None:
    """Each handler of the type is called once, in order; a subclass is another type, and nobody need listen."""
    bus, heard = Bus(), list[tuple[str, int]]()
    bus.subscribe(Ended, lambda event: heard.append(("first", event.number)))
    bus.subscribe(Ended, lambda event: heard.append(("second", event.number)))
    bus.subscribe(EndedBadly, lambda event: heard.append(("badly", event.number)))
    bus.publish(Ended(1))
    bus.publish(EndedBadly(2))
    bus.publish("nobody asked")
    assert heard == [("first", 1), ("second", 1), ("badly", 2)]


def test_an_error_reaches_the_publisher_after_every_handler() -> None:
    """The second handler runs although the first raises; of two errors the first is raised."""
    bus, heard = Bus(), list[int]()

    def fail(event: Ended) -> None:
        heard.append(event.number)
        raise ValueError(event.number + len(heard))

    bus.subscribe(Ended, fail)
    bus.subscribe(Ended, fail)
    with pytest.raises(ValueError, match=r"^11$"):
        bus.publish(Ended(10))
    assert heard == [10, 10]

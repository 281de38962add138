"""The sender: an outlet gets each event at least once, in order, from its own durable place."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.act.events.stream import node_silent, open_stream

from gpuwaste.act.events.outlet import DeliveryResult, OutletDownError, OutletFile
from gpuwaste.act.events.outlet_sender import IDLE_S, OutletSender
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.events.kind_catalogue import kinds_of
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import record


@dataclass
class Receiver:
    """The far end of an outlet: keeps what it gets, fails and refuses as a test says."""

    got: list[StoredEvent] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)  # of each call: how many events are taken before it fails, -1: all
    refused: frozenset[str] = frozenset()
    closed: int = 0

    def deliver(self, events: Sequence[StoredEvent], cluster: str) -> DeliveryResult:
        """Take the events."""
        assert cluster == "gw"
        fault = self.faults.pop(0) if self.faults else -1
        taken = events if fault < 0 else events[:fault]
        self.got += [event for event in taken if event.kind not in self.refused]
        if fault >= 0:
            raise OutletDownError("nobody there")
        return DeliveryResult([(event, "not wanted") for event in events if event.kind in self.refused])

    def close(self) -> None:
        """Count it."""
        self.closed += 1


def sender(
    receiver: Receiver, events: EventStore, clock: FakeClock, begin: str = "oldest", *patterns: str
) -> OutletSender:
    file = OutletFile("hook", "webhook", lambda: receiver, kinds_of(patterns, "x"), begin)
    return OutletSender(file, events, lambda: "gw", clock)


def drained(one: OutletSender) -> list[float]:
    """Step until the stream is at its end, or 50 times; return what each step asked to wait."""
    waits: list[float] = []
    while len(waits) < 50 and (not waits or waits[-1] != IDLE_S):
        waits.append(one.step())
    return waits


def test_an_outlet_gets_the_kinds_that_it_asks_for_in_order() -> None:
    """All events of the stream from the beginning, those of other kinds left out, and then nothing twice."""
    store, events, clock = open_stream(jobs=3)
    events.tell([node_silent()])
    receiver = Receiver()
    one = sender(receiver, events, clock, "oldest", "job.ended", "node.*")
    drained(one)
    assert [event.kind for event in receiver.got] == ["job.ended"] * 3 + ["node.silent"]
    assert [event.seq for event in receiver.got] == sorted(event.seq for event in receiver.got)
    upsert_jobs(store, [record(9, "eve")])
    drained(one)
    assert [event.subject for event in receiver.got[4:]] == [f"gw/9@{record(9, 'eve').start}"]
    assert (one.state.delivered, one.state.dead, one.state.failures) == (5, 0, 0)


def test_a_new_outlet_begins_now_and_an_old_one_goes_on() -> None:
    """What was there before a new outlet is not sent; another process goes on where the first has ended."""
    store, events, clock = open_stream(jobs=2)
    receiver = Receiver()
    drained(sender(receiver, events, clock, "now"))
    assert receiver.got == []
    upsert_jobs(store, [record(8, "eve")])
    again = Receiver()
    drained(sender(again, events, clock, "now"))
    assert [event.kind for event in again.got] == ["job.started", "job.ended"]


@given(st.lists(st.integers(-1, 6), max_size=8))
@settings(max_examples=examples(50), deadline=None)
def test_whatever_fails_each_event_comes_at_least_once_and_in_order(faults: list[int]) -> None:
    """A receiver that fails after some events gets them again; the first time of each is in the stream's order."""
    store, events, clock = open_stream(jobs=4)
    receiver = Receiver(faults=list(faults))
    one = sender(receiver, events, clock)
    waits = drained(one)
    assert waits[-1] == IDLE_S
    first = list(dict.fromkeys(event.seq for event in receiver.got))
    assert first == [stored.seq for stored in events.page(0, 100).events]
    assert one.state.failures == 0
    store.close()


def test_an_outlet_that_is_down_is_tried_ever_more_seldom() -> None:
    """The waits double up to five minutes, with jitter; what was not taken stays, and the error is kept for readers."""
    _, events, clock = open_stream(jobs=1)
    receiver = Receiver(faults=[0] * 20)
    one = sender(receiver, events, clock)
    waits = [one.step() for _ in range(12)]
    for number, wait in enumerate(waits):
        assert min(300.0, 2.0**number) / 2 <= wait <= min(300.0, 2.0**number)
    assert one.state.error == "nobody there"
    assert (one.state.failures, one.state.seq, events.place("hook")) == (12, 0, 0)
    drained(one)
    assert len(receiver.got) == 2


def test_what_a_receiver_never_takes_is_kept_aside() -> None:
    """It delays nothing; the dead letter names outlet, event and reason, also for who asks later."""
    _, events, clock = open_stream(jobs=1)
    receiver = Receiver(refused=frozenset({"job.started"}))
    one = sender(receiver, events, clock)
    drained(one)
    assert [event.kind for event in receiver.got] == ["job.ended"]
    (letter,) = events.dead(10)
    assert (letter["outlet"], letter["kind"], letter["reason"]) == ("hook", "job.started", "not wanted")
    assert events.dead_counts() == {"hook": 1}
    assert (one.state.delivered, one.state.dead) == (1, 1)


def test_a_pump_that_ends_closes_its_outlet() -> None:
    """Its thread gives up the connections."""
    _, events, clock = open_stream(jobs=1)
    receiver = Receiver()
    one = sender(receiver, events, clock)
    one.worker.start()
    one.worker.stop()
    assert receiver.closed == 1


@pytest.mark.parametrize("times", [1, 3])
def test_an_event_is_told_once(times: int) -> None:
    """The same id again, in one call or later, changes nothing."""
    _, events, _ = open_stream()
    assert events.tell([node_silent()] * times) == 1
    assert events.tell([node_silent(), node_silent("gpu2")]) == 1
    assert len(events.page(0, 10).events) == 2

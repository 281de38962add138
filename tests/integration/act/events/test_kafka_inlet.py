"""Inlet kafka: a topic of a real broker, read by a real hub that is killed in the middle: nothing is lost."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.unit.act.events.site import LICENCES, fs_full, sent, written
from tests.unit.act.events.stream import open_stream

from gpuwaste.act.events.inlet import load_inlet
from gpuwaste.act.events.inlet_parts import InletReader
from gpuwaste.act.events.inlet_store import InletStore
from gpuwaste.act.events.intake import Intake
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.kafka_broker import KafkaBroker, kafka_broker
from gpuwaste.testing.lone_hub import LoneHub, munged_path, private_munged

pytestmark = pytest.mark.long

ACCEPTED = 'gpuwaste_hub_inlet_events_total{inlet="storage",result="accepted"}'


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    with kafka_broker(tmp_path) as found:
        yield found


def inlet_text(broker: KafkaBroker, begin: str = "oldest", timeout_s: float = 10.0) -> str:
    return (
        "[inlet]\nper_minute = 60000\nper_day = 1000000\n"
        f'[kafka]\nbrokers = ["{broker.address}"]\ntopic = "site"\nbegin = "{begin}"\ntimeout_s = {timeout_s}\n'
    )


def produce(broker: KafkaBroker, *bodies: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "message.max.bytes": 20_000_000, "log_level": 0})
    for body in bodies:
        producer.produce("site", body)
        producer.poll(0)
    assert producer.flush(60) == 0


def running(folder: Path, text: str) -> tuple[InletReader, Intake, EventStore]:
    store, stream, _ = open_stream()
    file = load_inlet(written(folder, text))
    intake = Intake(file, InletStore(store, SystemClock()), lambda: "gw", SystemClock())
    made: Any = file.make()
    return InletReader(intake, made, SystemClock()), intake, stream


def ids(stream: EventStore) -> list[str]:
    """Return the senders' ids of the events in a stream."""
    return [json.loads(event.data)["sent_id"] for event in stream.page(0, 100).events if isinstance(event, StoredEvent)]


def stepped(reader: InletReader, intake: Intake, count: int) -> None:
    """Step until so many events were accepted."""

    def done() -> bool:
        reader.step()
        return intake.state.events["accepted"] >= count

    wait_until(done, 60, f"{count} events", poll_s=0.0)


def test_events_of_a_topic_are_taken_from_the_stored_place(tmp_path: Path, broker: KafkaBroker) -> None:
    """The valid ones in order, the others set aside; another process goes on where the first has ended."""
    broker.create("site")
    produce(broker, *(sent(fs_full(n)) for n in range(50)), b"nonsense", sent(fs_full(3)))
    reader, intake, stream = running(tmp_path / "in", inlet_text(broker))
    stepped(reader, intake, 50)
    wait_until(lambda: reader.step() >= 0 and intake.state.events["repeated"] == 1, 30, "the last", poll_s=0.0)
    assert (intake.state.events["quarantined"], intake.state.failures) == (1, 0)
    assert ids(stream) == [f"e{n}" for n in range(50)]
    places = intake.store.places("storage")
    assert places is not None
    assert places.next == {0: 52}
    assert places.log, "the broker tells the topic's id"
    produce(broker, sent(fs_full(99)))
    made: Any = intake.file.make()
    again = InletReader(intake, made, SystemClock())
    stepped(again, intake, 51)
    assert intake.state.events["repeated"] == 1
    reader.worker._last()
    again.worker._last()


def test_a_new_inlet_begins_now_unless_its_file_says_else(tmp_path: Path, broker: KafkaBroker) -> None:
    """What was in the topic before is left there, also when the hub is restarted before the first event."""
    broker.create("site")
    produce(broker, sent(fs_full(1)))
    reader, intake, _ = running(tmp_path / "in", inlet_text(broker, "now"))
    reader.step()
    reader.worker._last()
    produce(broker, sent(fs_full(2)))
    made: Any = intake.file.make()
    again = InletReader(intake, made, SystemClock())
    stepped(again, intake, 1)
    again.worker._last()
    assert intake.state.events["accepted"] == 1


def test_a_message_of_ten_megabytes_is_set_aside(tmp_path: Path, broker: KafkaBroker) -> None:
    """The events behind it are taken."""
    broker.create("site")
    produce(broker, sent(fs_full(1, data={"file_system": "x" * 10_000_000})), sent(fs_full(2)))
    reader, intake, _ = running(tmp_path / "in", inlet_text(broker))
    stepped(reader, intake, 1)
    reader.worker._last()
    assert intake.state.events["quarantined"] == 1
    assert "16384 at most" in intake.store.aside(1)[0]["reason"]


def test_a_broker_that_has_lost_its_log_is_noticed(
    tmp_path: Path, broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic is another then: it is read from its beginning, although it is longer than the stored place."""
    broker.create("site")
    produce(broker, sent(fs_full(1)), sent(fs_full(2)))
    reader, intake, stream = running(tmp_path / "in", inlet_text(broker, timeout_s=2.0))
    stepped(reader, intake, 2)
    broker.kill()
    wait_until(lambda: reader.step() > 0, 30, "the inlet to notice", poll_s=0.0)
    assert intake.state.error.startswith(f"{broker.address}: topic site: ")
    assert "\n" not in intake.state.error
    broker.start()
    broker.create("site")
    produce(broker, *(sent(fs_full(n)) for n in (2, 3, 4, 5)))
    stepped(reader, intake, 5)
    assert intake.state.failures == 0
    reader.worker._last()
    assert ids(stream) == [f"e{n}" for n in range(1, 6)]
    assert "topic site was created again" in caplog.text


@pytest.mark.skipif(munged_path() is None, reason="munge is not installed")
def test_a_hub_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, broker: KafkaBroker) -> None:
    """Kill -9 three times in the middle of 30,000 events: the stream has each once, in the topic's order."""
    broker.create("site")
    most = 30_000
    folder = tmp_path / "inlets.d"
    written(folder, inlet_text(broker) + LICENCES)
    kind = {"type": "site.licence_low"}
    produce(broker, *(sent(fs_full(n, **kind, data={"licence": "x", "left": n})) for n in range(most)))
    with private_munged() as munge:
        hub = LoneHub(tmp_path, munge, {"inlets_dir": str(folder)})
        try:
            for _ in range(3):
                hub.start()
                wait_until(lambda: hub.metric(ACCEPTED) > 1000, 60, "events", poll_s=0.01)
                hub.kill()
            taken = len(stored(tmp_path))
            assert 3000 < taken < most, "killed in the middle"
            hub.start()
            wait_until(lambda: hub.metric(ACCEPTED) == most - taken, 180, "the last event")
        finally:
            hub.stop()
    assert stored(tmp_path) == list(range(most))


def stored(folder: Path) -> list[int]:
    """Return the numbers of the events in a hub's store, in the stream's order."""
    store = HubStore.open(folder / "state" / "hub.duckdb", SystemClock())
    stream, found, after = EventStore(store, SystemClock()), [], 0
    while (page := stream.page(after, 5000)).until != after:
        found += [int(json.loads(event.data)["left"]) for event in page.events if isinstance(event, StoredEvent)]
        after = page.until
    store.close()
    return found

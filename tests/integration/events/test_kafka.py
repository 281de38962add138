"""Outlet kafka against a real broker of the Kafka protocol, read back by a client of its own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.events.stream import node_silent, open_stream

from gpuwaste.events.envelope import event_of
from gpuwaste.events.outlet import Outlet, OutletDownError
from gpuwaste.events.outlet_files import load_outlet
from gpuwaste.testing.kafka_broker import KafkaBroker, kafka_broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with kafka_broker(tmp_path_factory.mktemp("broker")) as found:
        yield found


def outlet(folder: Path, broker: KafkaBroker, prefix: str, timeout_s: float = 60.0) -> Outlet:
    file = folder / "bus.toml"
    text = f'[kafka]\nbrokers = ["{broker.address}"]\ntopic_prefix = "{prefix}"\ntimeout_s = {timeout_s}\n'
    file.write_text(text)
    return load_outlet(file).make()


def test_events_are_read_back_by_family_with_the_run_as_key(tmp_path: Path, broker: KafkaBroker) -> None:
    """A topic for jobs and one for nodes; key, header and value are CloudEvents' structured mode; order is kept."""
    broker.create("a.job", "a.node")
    _, stream, _ = open_stream(jobs=200)
    stream.tell([node_silent()])
    sent = [event_of(stored) for stored in stream.page(0, 1000).events]
    way = outlet(tmp_path, broker, "a.")
    assert way.deliver(sent, "gw").dead == []
    way.close()
    jobs, nodes = broker.read("a.job", 400), broker.read("a.node", 1)
    assert [json.loads(message.value())["id"] for message in jobs] == [event.id for event in sent[:-1]]
    assert [message.key().decode() for message in jobs] == [event.key for event in sent[:-1]]
    assert dict(jobs[0].headers()) == {"content-type": b"application/cloudevents+json"}
    assert [json.loads(message.value())["type"] for message in nodes] == ["gpuwaste.node.silent"]


def test_a_broker_that_is_gone_gets_all_when_it_is_back(tmp_path: Path) -> None:
    """Killed, it acknowledges nothing and the outlet says so; started anew it takes the same events."""
    _, stream, _ = open_stream(jobs=50)
    sent = [event_of(stored) for stored in stream.page(0, 1000).events]
    with kafka_broker(tmp_path) as broker:
        broker.create("b.job")
        way = outlet(tmp_path, broker, "b.", timeout_s=5.0)
        way.deliver(sent, "gw")
        broker.kill()
        with pytest.raises(OutletDownError, match=broker.address):
            way.deliver(sent, "gw")
        broker.start()
        broker.create("b.job")
        way.deliver(sent, "gw")
        way.close()
        assert [json.loads(message.value())["id"] for message in broker.read("b.job", 100)] == [e.id for e in sent]


def test_nobody_at_the_address_is_one_line(tmp_path: Path) -> None:
    """The brokers' addresses and what librdkafka says."""
    broker = KafkaBroker(tmp_path / "none.log", port=1)
    _, stream, _ = open_stream(jobs=1)
    with pytest.raises(OutletDownError, match=r"127\.0\.0\.1:1: ") as raised:
        outlet(tmp_path, broker, "c.", timeout_s=2.0).deliver([event_of(s) for s in stream.page(0, 10).events], "gw")
    assert "\n" not in str(raised.value)

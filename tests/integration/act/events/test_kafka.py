"""Outlet kafka against a real broker of the Kafka protocol, read back by a client of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.unit.act.events.stream import node_silent, open_stream

from gpuwaste.act.events.outlet import Outlet, OutletDownError, load_outlet
from gpuwaste.act.events.outlet_sender import IDLE_S, OutletSender
from gpuwaste.core.typed import convert
from gpuwaste.jobs.events.envelope import event_of, tell
from gpuwaste.jobs.events.kind_catalogue import catalogue
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.hub_rows import HOUR, record
from gpuwaste.testing.kafka_broker import KafkaBroker, kafka_broker

pytestmark = pytest.mark.long


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
    assert [message.key().decode() for message in jobs] == [event.subject for event in sent[:-1]]
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


def test_a_broker_that_acknowledges_and_forgets_gets_all_again_from_a_new_outlet(tmp_path: Path) -> None:
    """The hub cannot know it: the old outlet goes on behind what was lost, one with another name begins anew."""
    store, stream, clock = open_stream(jobs=20)
    with kafka_broker(tmp_path) as broker:
        broker.create("d.job")
        outlet(tmp_path, broker, "d.", timeout_s=20.0)
        text = (tmp_path / "bus.toml").read_text()
        for name in ("bus", "again"):
            (tmp_path / f"{name}.toml").write_text(f'[outlet]\nbegin = "oldest"\n{text}')
        first = OutletSender(load_outlet(tmp_path / "bus.toml"), stream, lambda: "gw", clock)
        first.step()
        assert first.state.delivered == 40
        broker.kill()
        broker.start()
        broker.create("d.job")
        upsert_jobs(store, [record(99, "eve")])
        wait_until(lambda: first.step() == IDLE_S, 60, "the outlet to go on", poll_s=0.1)
        assert len(broker.read("d.job", 2)) == 2
        again = OutletSender(load_outlet(tmp_path / "again.toml"), stream, lambda: "gw", clock)
        wait_until(lambda: again.step() == IDLE_S, 60, "the new outlet", poll_s=0.1)
        sent = [event_of(stored).id for stored in stream.page(0, 1000).events]
        assert [json.loads(message.value())["id"] for message in broker.read("d.job", 44)[2:]] == sent
        for sender in (first, again):
            sender.worker._last()


def test_nobody_at_the_address_is_one_line(tmp_path: Path) -> None:
    """The brokers' addresses and what librdkafka says."""
    broker = KafkaBroker(tmp_path / "none.log", port=1)
    _, stream, _ = open_stream(jobs=1)
    with pytest.raises(OutletDownError, match=r"127\.0\.0\.1:1: ") as raised:
        outlet(tmp_path, broker, "c.", timeout_s=2.0).deliver([event_of(s) for s in stream.page(0, 10).events], "gw")
    assert "\n" not in str(raised.value)


def test_an_event_of_each_kind_is_read_back_and_meets_its_schema(tmp_path: Path, broker: KafkaBroker) -> None:
    """Every kind of the catalogue, through the stream and the outlet to a real broker and a client of its own."""
    kinds = catalogue()
    topics = sorted({f"e.{kind.family}" for kind in kinds.values()})
    broker.create(*topics)
    _, stream, clock = open_stream()
    for number, kind in enumerate(kinds.values()):
        values = example(kind.schema())
        data = convert(values, kind.data)
        run = RunKey("gw", 7, HOUR) if "jobid" in values else None
        subject = "" if run else f"subject/{number}"
        stream.tell([tell(kind.name, data, HOUR + number, subject=subject, run=run, unique=kind.name)])
    file = tmp_path / "bus.toml"
    file.write_text(
        f'[outlet]\nbegin = "oldest"\n[kafka]\nbrokers = ["{broker.address}"]\ntopic_prefix = "e."\ntimeout_s = 60.0\n'
    )
    sender = OutletSender(load_outlet(file), stream, lambda: "gw", clock)
    wait_until(lambda: sender.step() == IDLE_S, 60, "the outlet", poll_s=0.1)
    wanted = {topic: sum(f"e.{kind.family}" == topic for kind in kinds.values()) for topic in topics}
    found = [json.loads(message.value()) for topic in topics for message in broker.read(topic, wanted[topic])]
    sender.worker._last()
    assert sorted(event["type"] for event in found) == sorted(f"gpuwaste.{name}" for name in kinds)
    for event in found:
        kind = kinds[event["type"].removeprefix("gpuwaste.")]
        assert event["dataschema"] == kind.schema_id
        Draft202012Validator(kind.schema()).validate(event["data"])


def example(schema: dict[str, Any], defs: dict[str, Any] | None = None) -> Any:
    """Return a value that a JSON Schema of the catalogue takes."""
    known = defs if defs is not None else schema.get("$defs", {})
    if "$ref" in schema:
        return example(known[schema["$ref"].rpartition("/")[2]], known)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example(schema["anyOf"][0], known)
    found: Any = {
        "object": lambda: {name: example(one, known) for name, one in schema.get("properties", {}).items()},
        "array": lambda: [example(one, known) for one in schema.get("prefixItems", [])],
        "string": lambda: "0" * 16 if "pattern" in schema else "x",
        "integer": lambda: max(7, schema.get("minimum", 0)),
        "number": lambda: 0.5,
        "boolean": lambda: True,
        "null": lambda: None,
    }[schema.get("type", "null")]
    return found()

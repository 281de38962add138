"""The envelope: CloudEvents 1.0 as the project's own SDK reads it, ids that stay, the run's key as the key."""

import json
from dataclasses import replace

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event
from cloudevents.core.formats.json import JSONFormat
from tests.unit.act.events.stream import node_silent, open_stream

from gpuwaste.jobs.events.envelope import MEDIA_TYPE, StoredEvent, cloud_event, encoded, event_id, event_of, tell
from gpuwaste.jobs.events.kinds.node import NodeHeard
from gpuwaste.jobs.job_event import HistoryEvent
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.hub_rows import HOUR


def test_the_sdk_of_cloudevents_reads_each_event() -> None:
    """Its validation takes type, source, subject, time, schema and extensions, and finds the data of the run."""
    _, events, _ = open_stream(jobs=1)
    events.tell([node_silent()])
    read = []
    for stored in events.page(0, 10).events:
        message = HTTPMessage({"content-type": MEDIA_TYPE}, encoded(event_of(stored), "gw"))
        read.append(from_structured_event(message, JSONFormat()))
    assert [event.get_type() for event in read] == [
        "gpuwaste.job.started",
        "gpuwaste.job.ended",
        "gpuwaste.node.silent",
    ]
    assert {event.get_source() for event in read} == {"/gpuwaste/gw"}
    assert [event.get_subject() for event in read] == [f"gw/1@{HOUR}", f"gw/1@{HOUR}", "node/gpu1"]
    assert [event.get_extension("partitionkey") for event in read] == [event.get_subject() for event in read]
    assert sorted(event.get_extension("sequence") for event in read) == [e.get_extension("sequence") for e in read]
    data = read[1].get_data()
    assert isinstance(data, dict)
    assert (data["jobid"], data["job"]["state"], data["job"]["user"]) == (1, "COMPLETED", "user1")


def test_the_same_fact_has_the_same_id() -> None:
    """An id is of kind, subject and what makes it unique; a run's later state does not change it."""
    run = HistoryEvent(1, "ended", RunKey("gw", 7, HOUR), HOUR, None)
    assert event_of(run).id == event_of(replace(run, seq=9, at_utc=HOUR + 5)).id
    ledger = replace(run, kind="ledger")
    assert len({event_of(run).id, event_of(ledger).id, event_of(replace(ledger, at_utc=HOUR + 1)).id}) == 3
    assert event_id("a", "b", "c") != event_id("a", "bc", "")


def test_an_event_takes_the_data_of_its_kind_alone() -> None:
    """Another type, or a kind that is none, is a defect of the caller."""
    with pytest.raises(TypeError, match=r"node\.silent takes NodeHeard, not str"):
        tell("node.silent", "x", HOUR, subject="node/n")
    with pytest.raises(KeyError):
        tell("node.gone", NodeHeard("gw", "n", 1, 1.0), HOUR, subject="node/n")


@pytest.mark.parametrize("at_utc", [-5, 0, 253_402_300_799, 2**62])
@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "ü/ \n'\"<b>", "x" * 3000])
def test_what_nobody_would_send_is_still_an_event(at_utc: int, text: str) -> None:
    """Times outside the calendar, and names with controls, half surrogates or nothing, give one line of valid JSON."""
    store, events, _ = open_stream()
    odd = tell("node.silent", NodeHeard("gw", "n", 1, 1.0), at_utc, subject=text.replace("\ud800", "?"))
    assert events.tell([odd]) == 1
    (stored,) = events.page(0, 10).events
    assert isinstance(stored, StoredEvent)
    line = encoded(event_of(stored), text.replace("\ud800", "?"))
    assert b"\n" not in line
    found = json.loads(line)
    assert found["time"].endswith("+00:00")
    assert found["subject"]
    store.close()


def test_an_event_of_an_unknown_kind_has_no_schema() -> None:
    """A store that a newer hub has written may have kinds of which this one knows nothing: they are handed over too."""
    event = event_of(replace(node_silent(), kind="node.newer", seq=3))
    assert "dataschema" not in cloud_event(event, "gw")

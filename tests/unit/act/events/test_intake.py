"""What comes by an inlet: only valid events of the site get into the stream, each once, within bounds."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.act.events.site import LICENCES, WEBHOOK, fs_full, sent, written
from tests.unit.act.events.stream import open_stream

from gpuwaste.act.events.inlet import load_inlet
from gpuwaste.act.events.inlet_store import MOST_ASIDE, AsideEvent, InletStore, LogPlaces, SentRequest
from gpuwaste.act.events.intake import MAX_BATCH, MAX_EVENT, EventBudget, Intake, SiteReader, texts_of
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.testing.clocks import FakeClock

NOW = 1_700_000_000


def intake(folder: Path, text: str = WEBHOOK) -> tuple[Intake, Any]:
    """Return an inlet's intake, and the stream that it writes to."""
    store, stream, clock = open_stream()
    return Intake(load_inlet(written(folder, text)), InletStore(store, clock), lambda: "gw", clock), stream


def test_a_valid_event_is_told_with_the_hub_s_time(tmp_path: Path) -> None:
    """Under site/, about no run, with the sender's id and time as data only; sent again it is known."""
    one, stream = intake(tmp_path)
    event = fs_full(subject="gw/7@1700000000", time="1999-01-01T00:00:00Z", traceparent="x")
    assert one.take([sent(event)]).accepted == 1
    again = one.take([sent(event), sent(fs_full(subject="other"))])
    assert (again.accepted, again.repeated) == (0, 2)
    (told,) = stream.page(0, 10).events
    assert (told.kind, told.subject, told.run, told.user) == ("site.fs_full", "site/gw/7@1700000000", None, "")
    assert told.at_utc > NOW - 10**6
    assert json.loads(told.data) == {
        "cluster": "gw",
        "inlet": "storage",
        "source": "/storage/1",
        "sent_id": "e1",
        "sent_time": "1999-01-01T00:00:00Z",
        "file_system": "/scratch",
        "used_ratio": 0.97,
        "users": [],
    }


def test_the_same_id_of_another_source_is_another_event(tmp_path: Path) -> None:
    """So that no sender can keep another's events out."""
    one, _ = intake(tmp_path)
    assert one.take([sent(fs_full()), sent(fs_full(source="/storage/2"))]).accepted == 2


def test_a_site_s_own_kind_has_its_own_fields(tmp_path: Path) -> None:
    """They are checked as declared; what is not declared is left out."""
    one, stream = intake(tmp_path, WEBHOOK + LICENCES)
    kind = {"type": "gpuwaste.site.licence_low"}
    taken = one.take(
        [
            sent(fs_full(1, **kind, data={"licence": "matlab", "inlet": "other", "more": 1})),
            sent(fs_full(2, **kind, data={"licence": 7})),
            sent(fs_full(3, **kind, data={"left": 3})),
        ]
    )
    assert (taken.accepted, list(taken.reasons)) == (
        1, ["data: licence: expected `str`, got `int`", "data: object missing required field `licence`"],
    )  # fmt: skip
    data = json.loads(stream.page(0, 10).events[0].data)
    assert (data["licence"], data["left"], data["inlet"]) == ("matlab", None, "storage")
    assert "more" not in data


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not a CloudEvent in JSON"),
        (b"\xff\xfe", "not a CloudEvent in JSON"),
        (b"[" * 10_000, "not a CloudEvent in JSON"),
        (b"x" * (MAX_EVENT + 1), "16385 bytes: expected 16384 at most"),
        (b"x" * 10_000_000, "10000000 bytes: expected 16384 at most"),
        (sent(fs_full(id="")), "not a CloudEvent in JSON: id: "),
        (sent(fs_full(id=7)), "not a CloudEvent in JSON: id: "),
        (sent({**fs_full(), "specversion": "2.0"}), 'expected specversion "1.0"'),
        (sent(fs_full(datacontenttype="text/xml")), "and data in JSON"),
        (sent(fs_full(data_base64="AA==")), "and data in JSON"),
        (sent(fs_full(type="job.ended")), "type 'job.ended': this inlet accepts site.fs_full"),
        (sent(fs_full(type="gpuwaste.gpuwaste.site.fs_full")), "this inlet accepts"),
        (sent(fs_full(data=[1])), "data: expected `object`, got `array`"),
        (sent(fs_full(data={})), "data: object missing required field `file_system`"),
        (sent(fs_full(data={"file_system": ""})), "data: file_system: "),
        (sent(fs_full(data={"file_system": "/s", "used_ratio": 97})), "data: used_ratio: "),
        (sent(fs_full())[:-2] + b', "data": ' + b"[" * 5000 + b"]" * 5000 + b"}", "not a CloudEvent in JSON"),
    ],
)
def test_what_is_not_valid_is_set_aside_with_the_reason(tmp_path: Path, text: bytes, reason: str) -> None:
    """One line; the beginning of what was sent is kept, and nothing gets into the stream."""
    one, stream = intake(tmp_path)
    (found,) = one.take([text]).reasons
    assert reason in found
    assert "\n" not in found
    assert stream.page(0, 10).events == ()
    (row,) = one.store.aside(10)
    assert row["reason"] == found
    assert len(row["raw"]) <= 2000


def test_the_same_bytes_are_kept_once_and_the_newest_stay(tmp_path: Path) -> None:
    """Somebody who sends nonsense for ever fills no disk."""
    one, _ = intake(tmp_path)
    one.take([b"nonsense"])
    one.take([b"nonsense"])
    assert one.store.aside_counts() == {"storage": 1}
    for first in range(0, MOST_ASIDE + 200, 100):
        one.take([b"%d!" % number for number in range(first, first + 100)])
    assert one.store.aside_counts() == {"storage": MOST_ASIDE}
    assert one.store.aside(1)[0]["raw"] == f"{MOST_ASIDE + 199}!"


def test_a_request_is_known_as_long_as_its_signature_is_good(tmp_path: Path) -> None:
    """Then it is forgotten: what is kept is bounded by what the inlet's budget lets in within the window."""
    store, _, clock = open_stream()
    kept = InletStore(store, clock)
    now = clock.utc_s()
    for number in range(20):
        kept.take("storage", [], [], request=SentRequest(f"{number:064x}", now + 300 + number))
    first, last = SentRequest(f"{0:064x}", now + 300), SentRequest(f"{19:064x}", now + 319)
    assert (kept.knows("storage", first), kept.knows("other", first)) == (True, False)
    clock.advance(310)
    kept.take("storage", [], [], request=SentRequest("f" * 64, now + 600))
    assert (kept.knows("storage", first), kept.knows("storage", last)) == (False, True)
    with store.reader() as db:
        assert db.answer_to("SELECT count(*) FROM inlet_requests").rows == [(11,)]


def test_a_request_that_is_not_stored_is_not_known(tmp_path: Path) -> None:
    """The sender sends it again: with its events it is on disk, or nothing of it."""
    one, stream = intake(tmp_path)
    request = SentRequest("a" * 64, 2**40)
    with pytest.raises(StoreError):
        one.take([sent(fs_full())], LogPlaces(2**80, {}), request=request)
    assert (one.knows(request), stream.page(0, 10).events) == (False, ())
    assert one.take([sent(fs_full())], request=request).accepted == 1
    assert one.knows(request)


def test_places_are_stored_with_the_events(tmp_path: Path) -> None:
    """A new inlet has none; one inlet's are not another's."""
    one, _ = intake(tmp_path)
    assert one.store.places("storage") is None
    one.take([sent(fs_full())], LogPlaces(7, {0: 5, 3: 1}))
    one.take([], LogPlaces(7, {0: 6, 3: 1}))
    assert one.store.places("storage") == LogPlaces(7, {0: 6, 3: 1})
    assert one.store.places("stor") is None


def test_a_request_has_one_event_or_an_array(tmp_path: Path) -> None:
    """More than a hundred are refused as a whole."""
    assert len(list(texts_of(sent(fs_full(1), fs_full(2))))) == 2
    assert list(texts_of(b"nonsense")) == [b"nonsense"]
    with pytest.raises(ParseError, match="101 events: expected 100"):
        list(texts_of(sent(*[1] * (MAX_BATCH + 1))))
    with pytest.raises(ParseError, match="the body is not JSON"):
        list(texts_of(b"[" * 100_000))


def test_a_budget_fills_steadily() -> None:
    """Sixty at once, then one a second; a day's bound holds as well; a large batch waits for a full bucket."""
    clock = FakeClock(NOW)
    budget = EventBudget(60, 100, clock)
    assert budget.wait_s(60) == 0
    budget.spend(60)
    assert budget.wait_s(1) == pytest.approx(1)
    clock.advance(60)
    assert budget.wait_s(1000) > 60
    budget.spend(60)
    assert budget.wait_s(1) > 10 * 864


@given(st.binary(max_size=300) | st.recursive(st.none() | st.text() | st.integers() | st.floats(), st.lists).map(sent))
@settings(max_examples=examples(200), deadline=None)
def test_no_bytes_are_more_than_a_reason(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    """Whatever is sent becomes an event of the site or a line of words."""
    reader = SiteReader("x", load_inlet(written(tmp_path_factory.getbasetemp(), WEBHOOK)).kinds)
    found = reader.read(text, "gw", NOW)
    assert isinstance(found, StoredEvent | AsideEvent)

"""The advisor's outbox keeps every verdict until it is acknowledged, and counts what is spent exactly once."""

import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.advisor.verdicts import DAY_US, NOON_US, put, spent, verdict
from tests.unit.net.outboxes import rejected

from gpuwaste.advice.verdicts.verdict_batch import encode_verdict
from gpuwaste.advisor.verdict_outbox import REJECTED_S, Chunk, VerdictOutbox
from gpuwaste.advisor.verdict_writer import add_line
from gpuwaste.core.errors import StoreError
from gpuwaste.jobs.verdict import verdict_from_json
from gpuwaste.net.batch import MAX_BATCH_BYTES, Envelope, encode_batch

TODAY = "2023-11-15"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "verdicts.sqlite"


def waiting(outbox: VerdictOutbox) -> list[int]:
    batch = outbox.take()
    return [] if batch is None else [int(row.id) for row in batch.rows]


def test_verdicts_leave_in_order_when_they_are_acknowledged(path: Path) -> None:
    """They are offered until then, whole, and are nowhere afterwards; a restart in between changes nothing."""
    outbox = VerdictOutbox(path, UTC)
    assert put(outbox, [verdict(2), verdict(1)]) == 2
    outbox.close()
    outbox = VerdictOutbox(path, UTC)
    batch = outbox.take()
    assert batch is not None
    assert [verdict_from_json(json.loads(row.line)) for row in batch.rows] == [verdict(2), verdict(1)]
    assert outbox.depth() == 2
    assert outbox.ack(batch) == []
    assert (outbox.take(), outbox.depth()) == (None, 0)


def test_a_verdict_that_is_put_again_is_no_news(path: Path) -> None:
    """The first one of an id stays, and one reject counts once, also after the hub has it."""
    outbox = VerdictOutbox(path, UTC)
    reject = verdict(1, action="reject")
    assert [put(outbox, [reject]), put(outbox, [reject, verdict(2)])] == [1, 1]
    batch = outbox.take()
    assert batch is not None
    outbox.ack(batch)
    put(outbox, [reject])
    assert spent(outbox, "reject", "alice", TODAY) == 1


def test_what_counts_in_which_budget(path: Path) -> None:
    """Rejects that were said, and overrides that held something back; by user and by local day."""
    outbox = VerdictOutbox(path, UTC)
    put(
        outbox,
        [
            verdict(1, action="reject"),
            verdict(2, action="warn", would_be="reject", held="budget"),
            verdict(3, action="annotate", would_be="reject", held="override", override="deadline"),
            verdict(4, action="pass", would_be="pass", override="deadline"),
            verdict(5, action="reject", user="bob"),
            verdict(6, action="reject", at_utc_us=NOON_US + DAY_US),
        ],
    )
    assert spent(outbox, "reject", "alice", TODAY) == 1
    assert spent(outbox, "override", "alice", TODAY) == 1
    assert spent(outbox, "reject", "bob", TODAY) == 1
    assert spent(outbox, "reject", "alice", "2023-11-16") == 1
    assert spent(outbox, "override", "bob", TODAY) == 0


def test_a_day_is_the_site_s_own_and_old_ones_go(path: Path) -> None:
    """Noon in Greenwich is the next day far in the east; what was spent three days before the newest is forgotten."""
    outbox = VerdictOutbox(path, timezone(timedelta(hours=13)))
    assert outbox.day_of(NOON_US) == "2023-11-16"
    put(outbox, [verdict(1, action="reject")])
    assert spent(outbox, "reject", "alice", "2023-11-16") == 1
    put(outbox, [verdict(2, at_utc_us=NOON_US + 3 * DAY_US)])
    assert spent(outbox, "reject", "alice", "2023-11-16") == 0
    assert outbox.depth() == 2


def test_a_batch_fits_the_hub_s_limit(path: Path) -> None:
    """Large verdicts leave in several batches, each with its envelope within 1 MiB; rows are bounded too."""
    outbox = VerdictOutbox(path, UTC)
    put(outbox, [verdict(n, lines=("x" * 4000,) * 3) for n in range(200)])
    envelope = Envelope("gw" * 128, "h" * 256, "b" * 256, "v" * 256)
    seen = []
    while (batch := outbox.take()) is not None:
        assert len(encode_batch(envelope, batch)) <= MAX_BATCH_BYTES
        seen.append(len(batch.rows))
        outbox.ack(batch)
    assert (sum(seen), len(seen) > 1) == (200, True)
    put(outbox, [verdict(n) for n in range(9)])
    few = outbox.take(max_rows=4)
    assert few is not None
    assert len(few.rows) == 4


def test_rejected_verdicts_are_kept_aside_and_said_once(path: Path) -> None:
    """The hub's refusal of one line takes it out of the way of the others."""
    outbox = VerdictOutbox(path, UTC)
    put(outbox, [verdict(1), verdict(2)])
    batch = outbox.take()
    assert batch is not None
    assert [(row.id, why) for row, why in outbox.ack(batch, {3: "bad"})] == [(verdict(2).id, "bad")]
    assert (outbox.depth(), rejected(outbox)) == (0, 1)
    assert outbox.ack(batch, {3: "bad"}) == []


def test_a_verdict_that_is_too_large_does_not_travel(path: Path) -> None:
    """It is not taken into a chunk, and spends nothing."""
    chunk = Chunk()
    large = encode_verdict(verdict(2, action="reject", lines=("x" * 70_000,)))
    assert not add_line(chunk, large.line, VerdictOutbox(path, UTC).day_of)
    assert chunk == Chunk()


@pytest.mark.parametrize("name", ["J\u00fcrgens Job", "bad \udcff name"])
def test_a_name_of_any_characters_travels(path: Path, name: str) -> None:
    """As JSON's escapes, half of a surrogate pair too, which a job's name may hold."""
    outbox = VerdictOutbox(path, UTC)
    put(outbox, [verdict(1, name=name, action="reject")])
    batch = outbox.take()
    assert batch is not None
    assert batch.rows[0].line.isascii()
    assert verdict_from_json(json.loads(batch.rows[0].line)).name == name
    assert spent(outbox, "reject", "alice", TODAY) == 1


def test_a_full_disk_stores_nothing_and_heals(path: Path) -> None:
    """StoreError names the disk; neither the verdicts nor what they spend were stored, and the same put succeeds."""
    outbox = VerdictOutbox(path, UTC)
    connection = outbox._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 20")
    many = [verdict(n, action="reject") for n in range(1, 500)]
    with pytest.raises(StoreError, match=r"verdicts\.sqlite: the disk is full"):
        put(outbox, many)
    assert (outbox.depth(), spent(outbox, "reject", "alice", TODAY)) == (0, 0)
    connection.execute("PRAGMA max_page_count = 100000")
    assert put(outbox, many) == spent(outbox, "reject", "alice", TODAY) == 499


def test_a_second_advisor_is_refused(path: Path) -> None:
    """Two advisors with one state_dir: the second is told in one line."""
    outbox = VerdictOutbox(path)
    with pytest.raises(StoreError, match="another advisor"):
        VerdictOutbox(path)
    outbox.close()


def test_a_corrupt_file_is_set_aside(path: Path) -> None:
    """The file is kept under another name, and the advisor goes on with an empty one."""
    outbox = VerdictOutbox(path, UTC)
    put(outbox, [verdict(n) for n in range(1, 300)])
    outbox.close()
    data = bytearray(path.read_bytes())
    data[4096:9000] = os.urandom(4904)
    path.write_bytes(data)
    assert put(outbox, [verdict(1)]) == 1
    assert [kept.name for kept in outbox.set_aside] == ["verdicts.sqlite.corrupt-1"]
    assert waiting(outbox) == [1]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(st.integers(0, 20), max_size=4)),
        st.tuples(st.just("ack"), st.integers(1, 5)),
        st.tuples(st.just("lost"), st.integers(1, 5)),  # the hub took them, its answer did not come
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=30,
)


@settings(max_examples=examples(60), deadline=None)
@given(steps=STEPS)
def test_any_order_of_steps_loses_and_doubles_nothing(
    steps: list[tuple[str, list[int] | int | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Puts, repeated ones, acknowledgements, lost ones, restarts: the hub gets all by id; spending counts ids."""
    path = tmp_path_factory.mktemp("outbox") / "verdicts.sqlite"
    outbox, stored, hub = VerdictOutbox(path, UTC), set[int](), set[int]()
    for step, value in steps:
        if step == "put" and isinstance(value, list):
            put(outbox, [verdict(n, action="reject" if n % 2 else "warn") for n in value])
            stored |= set(value)
        elif step == "restart":
            outbox.close()
            outbox = VerdictOutbox(path, UTC)
        elif isinstance(value, int) and (batch := outbox.take(max_rows=value)) is not None:
            hub |= {int(row.id) for row in batch.rows}
            if step == "ack":
                outbox.ack(batch)
    assert hub | set(waiting(outbox)) == stored
    assert spent(outbox, "reject", "alice", TODAY) == sum(n % 2 for n in stored)
    outbox.close()


def test_refused_verdicts_are_kept_for_their_days(path: Path) -> None:
    """What the hub has refused has a user's name: it goes with the next verdict after 400 days, and not before."""
    outbox = VerdictOutbox(path, UTC)
    put(outbox, [verdict(1), verdict(2)])
    batch = outbox.take()
    assert batch is not None
    assert len(outbox.ack(batch, {2: "wrong", 3: "wrong"})) == 2
    outbox.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        older = "UPDATE rejected SET rejected_at = rejected_at - ? WHERE id = (SELECT min(id) FROM rejected)"
        connection.execute(older, (REJECTED_S + 60,))
    outbox = VerdictOutbox(path, UTC)
    put(outbox, [verdict(3)])
    assert rejected(outbox) == 1

"""Retention of each table that has one: what is older goes, what is younger stays, other tables lose nothing."""

import pytest
from tests.unit.store.stored_people import fill, texts

from gpuwaste.core.clock import Clock
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.store.database import MEMORY
from gpuwaste.store.hub.data_inventory import Retention
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.row_deletion import delete_old, retentions
from gpuwaste.testing.clocks import FakeClock

DAYS = {"hub.verdict_days": 400, "notify.audit_days": 30}


def filled(clock: Clock) -> HubStore:
    store = HubStore.open(MEMORY, clock)
    with store.writing() as db:
        for number, user in enumerate(("alice", "dave"), 1):
            fill(db, user, number)
    return store


@pytest.mark.parametrize(("table", "kept"), [pytest.param(*one, id=one[0]) for one in retentions()])
def test_rows_go_at_their_time(table: str, kept: Retention) -> None:
    """A row one second older than the days of its table's key is deleted, one of the same second is not."""
    clock = FakeClock()
    store, now = filled(clock), clock.utc_s()
    limit = now - DAYS[kept.days] * DAY_S
    with store.writing() as db:
        for other, its in retentions():
            at = (limit if other == table else now) * its.per_second
            db.execute(f"UPDATE {other} SET {its.column} = {at}")  # noqa: S608 names of ours
        old, first = (limit - 1) * kept.per_second, f"(SELECT min(rowid) FROM {table})"  # noqa: S608 names of ours
        db.execute(f"UPDATE {table} SET {kept.column} = {old} WHERE rowid = {first}")  # noqa: S608
    with store.reader() as db:
        before = texts(db)
    assert delete_old(store, clock, DAYS) == {table: 1}
    with store.reader() as db:
        after = texts(db)
    assert [name for name in before if before[name] != after[name]] == [table]
    assert all("dave" in row or "site2" in row for row in after[table])
    assert delete_old(store, clock, DAYS) == {}


def test_the_stream_goes_on_after_its_events_are_deleted() -> None:
    """An event that is told later has a higher number, though all that there were are deleted."""
    clock = FakeClock()
    store = HubStore.open(MEMORY, clock)
    events = EventStore(store, clock)
    for number in (1, 2):
        assert events.tell([StoredEvent(f"e{number}", "waste.opened", "x", clock.utc_s(), "{}")]) == 1
        assert [event.seq for event in events.page(0, 9).events] == [number]
        clock.advance(401 * DAY_S)
        assert delete_old(store, clock, DAYS) == {"told_events": 1}
        assert not events.page(0, 9).events

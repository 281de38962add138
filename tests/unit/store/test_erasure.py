"""Erasure: every text of every table is searched for the name; nothing of others is lost."""

import json

import pytest
from tests.unit.store.stored_people import NOT_FILLED, fill, named, texts

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import UsageError
from gpuwaste.store.database import MEMORY
from gpuwaste.store.hub.data_inventory import INVENTORY, Erase
from gpuwaste.store.hub.erasure import ErasedTable, Erasure, NameLeft, PersonName
from gpuwaste.store.hub.hub_store import HubStore

PERSONAL = {name for name, stored in INVENTORY.items() if stored.personal and name not in NOT_FILLED}


def filled(*people: tuple[str, str]) -> HubStore:
    """Return a store with a row in each table for each of (user, whom their texts name)."""
    store = HubStore.open(MEMORY, SystemClock())
    with store.writing() as db:
        for number, (user, mentioned) in enumerate(people, 1):
            fill(db, user, number, mentions=mentioned)
    return store


def erased(store: HubStore, user: str) -> list[ErasedTable]:
    with store.writing() as db:
        return Erasure(db, user).erase()


def test_no_text_of_any_table_names_the_erased_user() -> None:
    """Every column with text of every table is filled with alice; then no row names her, and dave's are the same."""
    store = filled(("alice", "alice"), ("dave", "dave"))
    with store.reader() as db:
        assert set(named(db, "alice")) == PERSONAL
        before = texts(db)
    erased(store, "alice")
    with store.reader() as db:
        assert named(db, "alice") == {}
        after = texts(db)
    of_dave = {table: [row for row in rows if "dave" in row] for table, rows in before.items()}
    assert of_dave == {table: [row for row in rows if "dave" in row] for table, rows in after.items()}
    deleted = {
        name
        for name, stored in INVENTORY.items()
        if name in PERSONAL and Erase.DELETE in {stored.own_rows if stored.owner else None, stored.other_rows}
    }
    assert {name for name in before if len(before[name]) != len(after[name])} == deleted


def test_others_texts_lose_the_name_and_nothing_else() -> None:
    """A submit line of dave with alice's directory keeps its words; an event of dave's that names her is deleted."""
    store = filled(("dave", "alice"))
    erased(store, "alice")
    with store.reader() as db:
        assert named(db, "alice") == {}
        assert db.execute('SELECT "user", submit_line, name FROM jobs').fetchall() == [
            ("dave", "submit_line in /home/erased/x", "name in /home/erased/x")
        ]
        assert db.execute("SELECT count(*) FROM told_events").fetchall() == [(0,)]
        assert db.execute("SELECT facts FROM actions").fetchall() == [('{"user": "erased", "x": "facts"}',)]


def test_a_second_time_changes_nothing() -> None:
    """Erasing is idempotent, and says which rows it changed."""
    store = filled(("alice", "alice"), ("dave", "alice"))
    first = {one.table: one for one in erased(store, "alice")}
    assert set(first) == PERSONAL
    assert first["jobs"] == ErasedTable("jobs", 1, own_deleted=False, mentions=6, mentions_deleted=False), (
        "dave's five texts, and her own reservation"
    )
    assert first["notice_opt_outs"] == ErasedTable(
        "notice_opt_outs", 1, own_deleted=True, mentions=0, mentions_deleted=False
    )
    assert erased(store, "alice") == []


def test_names_that_contain_the_name_are_other_people() -> None:
    """Erasing alice leaves alice2 and alice.smith as they are, in their rows and in texts of others."""
    store = filled(("alice2", "alice2"), ("alice.smith", "alice.smith"), ("bob", "alice.smith"))
    with store.reader() as db:
        before = texts(db)
    assert erased(store, "alice") == []
    with store.reader() as db:
        assert texts(db) == before


@pytest.mark.parametrize("name", ["müller", "CORP\\alice", 'a"b', "o'neil", "a b", "%x_", "."])
def test_names_as_json_writes_them(name: str) -> None:
    """Quotes, backslashes and letters that JSON escapes: the name goes from documents too."""
    person = PersonName(name)
    for ascii_only in (True, False):
        document = json.dumps({"user": name, "n": [f"x {name}", "other"]}, ensure_ascii=ascii_only)
        assert json.loads(person.erased(document)) == {"user": "erased", "n": ["x erased", "other"]}
    store = filled((name, "dave"))
    erased(store, name)
    with store.reader() as db:
        assert db.execute('SELECT "user" FROM jobs UNION SELECT "user" FROM verdicts').fetchall() == [("erased",)]


def test_a_name_of_the_site_is_said_and_not_changed() -> None:
    """A partition called as the user, and an account of others: both stay, and are listed."""
    store = filled(("alice", "alice"), ("dave", "dave"))
    with store.writing() as db:
        db.execute("UPDATE partitions SET name = 'alice' WHERE name = 'site2'")
        db.execute("UPDATE jobs SET account = 'alice' WHERE \"user\" = 'dave'")
    with store.writing() as db:
        erasure = Erasure(db, "alice")
        erasure.erase()
        assert erasure.left() == [NameLeft("jobs", "account", 1), NameLeft("partitions", "name", 1)]


@pytest.mark.parametrize("name", ["", " ", "erased", "a\nb", "x" * 300])
def test_what_is_no_name_is_refused(name: str) -> None:
    """An empty text would be in every row; the name of the erased is nobody's."""
    with pytest.raises(UsageError, match="user"):
        PersonName(name)


def test_days_go_to_the_part_of_the_erased() -> None:
    """Days that were added up are found by a part of their user's name: by that of the new name from then on."""
    store = filled(("alice", "alice"))
    erased(store, "alice")
    with store.reader() as db:
        query = f"SELECT {db.text('day_part')} FROM (SELECT 'erased' AS \"user\")"  # noqa: S608 a query of ours
        (part,) = db.execute(query).fetchall()
        assert db.execute("SELECT part FROM days").fetchall() == [part]

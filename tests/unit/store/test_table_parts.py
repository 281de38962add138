"""Parts of tables and their sums: any change of any value shows, in whichever order the rows are."""

from collections.abc import Iterator

import pytest

from gpuwaste.core.errors import StoreError
from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import MEMORY, Database, schema_tables
from gpuwaste.store.hub.store_move import StoreMove, moved_tables
from gpuwaste.store.hub.table_parts import PartedTable

SMALL = "{{'until_ms': 1, 'pct': {}, 'devices': 1, 'memory': NULL, 'memory_unknown': 0}}"
TIMES = {"hours": "hour_utc", "verdicts": "at_utc_us", "judged": "run_start"}
NUMBERS = ("0.1", "nextafter(0.1::DOUBLE, 1)")


@pytest.fixture
def db() -> Iterator[Database]:
    """Two empty stores of the hub's schema in memory, by the names that a move gives them."""
    database = Database.open(MEMORY, "hub")
    for side in ("file", "lake"):
        database.execute(f"ATTACH ':memory:' AS {side}")
        for table, columns in schema_tables("hub").items():
            made = ", ".join(f'"{column.name}" {column.kind}' for column in columns)
            database.execute(f'CREATE TABLE {side}."{table}" ({made})')
    yield database
    database.close()


def test_every_table_of_the_schema_is_moved_and_most_are_cut() -> None:
    """What a migration adds is moved without another word; the large tables are cut by time."""
    assert set(moved_tables()) == {*schema_tables("hub")} - {"schema_version"}
    assert {"jobs", "hours", "days", "judged", "verdicts", "events", "told_events"} <= {*moved_tables()}


@pytest.mark.parametrize(
    ("table", "column", "values"),
    [
        ("hours", "energy_j", NUMBERS),
        ("hours", "pct", ("[1, 2]", "[2, 1]")),
        ("hours", "unknown_reason", ("[]", "['']")),
        ("hours", "mem_max_b", ("0", "NULL")),
        ("verdicts", "p", (f"MAP {{'f': {NUMBERS[0]}}}", f"MAP {{'f': {NUMBERS[1]}}}")),
        ("verdicts", "name", ("''", "' '")),
        ("judged", "small", (SMALL.format(NUMBERS[0]), SMALL.format(NUMBERS[1]))),
    ],
)
def test_a_changed_value_is_found(db: Database, table: str, column: str, values: tuple[str, str]) -> None:
    """One value of one row differs, down to the last bit of a number: the part differs, and the error names it."""
    parted = PartedTable(table, "file", "lake")
    kind = next(c.kind for c in schema_tables("hub")[table] if c.name == column)
    for side, value in zip(("file", "lake"), values, strict=True):
        db.execute(f'INSERT INTO {side}."{table}" ("{column}", "{TIMES[table]}") SELECT {value}::{kind}, 5')
    source, target = parted.source_sums(db), parted.target_sums(db)
    (part,) = source
    assert source[part] != target[part]
    with pytest.raises(StoreError, match=f"table {table}: the copy has other values in {column}$"):
        parted.check(db, part, source[part])


def test_order_does_not_count_but_rows_that_are_twice_do(db: Database) -> None:
    """The same rows in another order are equal; a row twice in the place of another one is not."""
    parted = PartedTable("events", "file", "lake")
    added = "INSERT INTO {} (seq, at_utc) VALUES {}"
    db.execute(added.format("file.events", "(1, 5), (2, 5), (3, 5), (4, 5)"))
    db.execute(added.format("lake.events", "(4, 5), (2, 5), (1, 5), (3, 5)"))
    assert parted.source_sums(db) == parted.target_sums(db)
    db.execute("UPDATE lake.events SET seq = 1 WHERE seq = 2")
    assert parted.source_sums(db) != parted.target_sums(db)


def test_values_that_changed_places_are_found(db: Database) -> None:
    """Each column has the same values, but two rows have exchanged theirs."""
    parted = PartedTable("marks", "file", "lake")
    db.execute("INSERT INTO file.marks VALUES ('a', 1), ('b', 2)")
    db.execute("INSERT INTO lake.marks VALUES ('a', 2), ('b', 1)")
    with pytest.raises(StoreError, match="which values are in one row"):
        parted.check(db, 0, parted.source_sums(db)[0])


def test_parts_are_copied_one_by_one(db: Database) -> None:
    """Strange times are in the first and the last part; each part is copied and removed without the others."""
    parted = PartedTable("hours", "file", "lake")
    times = (-(2**62), -1, 0, 4 * DAY_S - 1, 4 * DAY_S, 400 * DAY_S, 2**62)
    db.execute("INSERT INTO file.hours (hour_utc) SELECT unnest(?::BIGINT[])", [times])
    source = parted.source_sums(db)
    assert {part: found.rows for part, found in source.items()} == {0: 4, 1: 1, 100: 1, max(source): 1}
    for part in source:
        parted.copy(db, part)
        parted.check(db, part, source[part])
    assert parted.target_sums(db) == source
    parted.remove(db, 0)
    assert parted.target_sums(db) == {part: found for part, found in source.items() if part}


def test_a_lake_gets_no_nul(db: Database) -> None:
    """A lake gets a text with NUL as other texts are written, where a file has one."""
    parted = PartedTable("marks", "file", "lake")
    db.execute("INSERT INTO file.marks VALUES ('a' || chr(0) || 'b', 1)")
    parted.copy(db, 0)
    parted.check(db, 0, parted.source_sums(db)[0])
    assert db.execute("SELECT key FROM lake.marks").fetchall() == [(r"a\x00b",)]


def test_a_row_whose_time_changed_is_moved_once(db: Database) -> None:
    """A row went to an earlier part since the first pass: what is stale goes first, so that no key is twice."""
    db.execute('CREATE UNIQUE INDEX one ON lake.notices (kind, "user", period_end, dry)')
    added = "INSERT INTO file.notices (kind, \"user\", period_end, dry, at_utc) VALUES ('digest', 'a', 1, false, ?)"
    db.execute(added, [900 * DAY_S])
    done = [StoreMove(db, "lake", lambda *_: None).copy(at_rest=True)]
    db.execute("UPDATE file.notices SET at_utc = 5")
    done.append(StoreMove(db, "lake", lambda *_: None).copy(at_rest=True))
    assert [(found.rows, found.copied) for found in done] == [(1, 1), (1, 1)]
    assert db.execute("SELECT at_utc FROM lake.notices").fetchall() == [(5,)]

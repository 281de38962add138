"""The comparison of a fleet with a store: equal sets are called equal, and every kind of difference is told."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwaste.core.clock import SystemClock
from gpuwaste.ledger.hour import AllocationHour, encode_hour, hour_from_wire
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.fleet_compare import Comparison, compare
from gpuwaste.testing.fleet_rows import GPUS, check, jobs_of, rows_of_hour

HOURS = 40


def rows(version: int = 1) -> list[AllocationHour]:
    return [row for node in (0, 7) for hour in range(HOURS) for row in rows_of_hour(node, hour, version, final=True)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store that holds the second version of every row."""
    path = tmp_path / "hub.duckdb"
    hub = HubStore.open(path, SystemClock())
    upsert_hours(hub, rows(2))
    hub.close()
    return path


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Return a record of both versions of every row, the newer first."""
    path = tmp_path / "sent.tsv"
    both = [*rows(2), *rows(1)]
    path.write_text("".join("\t".join(map(str, (*row.key, row.seq, check(row)))) + "\n" for row in both))
    return path


def test_equal_sets_are_equal(store: Path, record: Path) -> None:
    """The newest versions that were put are the rows of the store, each value included."""
    count = 2 * HOURS * GPUS
    assert compare(store, [record]) == Comparison(count, count, 0, 0, 0, 0)
    assert compare(store, [record]).equal


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM hours WHERE hour_utc = (SELECT max(hour_utc) FROM hours)", lambda c: c.missing == 2 * GPUS),
        ("UPDATE hours SET node = 'n0001' WHERE node = 'n0007'", lambda c: c.missing == c.foreign == HOURS * GPUS),
        ("UPDATE hours SET seq = 1 WHERE node = 'n0007'", lambda c: c.different == HOURS * GPUS),
        ("UPDATE hours SET util_ms = list_reverse(util_ms)", lambda c: c.different > HOURS * GPUS),
        ("UPDATE hours SET energy_j = energy_j + 0.002", lambda c: c.different == 2 * HOURS * GPUS),
        ("UPDATE hours SET mem_max_b = NULL", lambda c: c.different == 2 * HOURS * GPUS),
        ("INSERT INTO hours FROM hours WHERE node = 'n0007'", lambda c: c.repeated == HOURS * GPUS),
    ],
)
def test_each_difference_is_told(store: Path, record: Path, change: str, told: Callable[[Comparison], bool]) -> None:
    """A row that is missing, foreign, changed or there twice makes the sets different, and is counted."""
    with connect(store) as db:
        db.execute(change)
    found = compare(store, [record])
    assert told(found), found
    assert not found.equal


def test_the_rows_are_what_an_agent_may_send() -> None:
    """Each row passes the hub's checks unchanged, and belongs to a run that accounting would tell."""
    runs = {job.run_key for node in (0, 7) for job in jobs_of(node, HOURS)}
    for row in rows():
        assert hour_from_wire(json.loads(encode_hour(row).line)) == row
        assert row.run_key in runs

"""What a lake's statements ask PostgreSQL: each question takes a round trip, wherever the catalog is."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.lake_store import LakeStore
from gpuwaste.store.lake_database import LakeLocation
from gpuwaste.testing.hub_rows import HOUR, record
from gpuwaste.testing.postgres_server import PostgresServer
from gpuwaste.testing.slow_link import SlowLink

pytestmark = pytest.mark.sockets
CATALOG = "__ducklake_metadata_lake"
STATS = ("ducklake_table_column_stats", "ducklake_table_stats")
NEVER_WRITTEN = f"SELECT table_id FROM {CATALOG}.ducklake_table_stats WHERE record_count = 0"  # noqa: S608


@pytest.fixture
def link(postgres: PostgresServer) -> Iterator[SlowLink]:
    """Lend a way to PostgreSQL that counts."""
    with SlowLink(postgres.socket, 0) as found:
        yield found


@pytest.fixture
def location(postgres: PostgresServer, link: SlowLink, tmp_path: Path) -> LakeLocation:
    database = postgres.new_database().rpartition(" ")[2]
    return LakeLocation(f"host=127.0.0.1 port={link.port} user=gpuwaste {database}", tmp_path / "lake")


def asked(link: SlowLink, call: Callable[[], object]) -> int:
    """Return how many questions a call asks PostgreSQL."""
    before = link.exchanges
    call()
    return link.exchanges - before


def rows(store: HubStore, sql: str) -> list[tuple[object, ...]]:
    with store.reader() as db:
        return db.execute(sql).fetchall()


def test_an_empty_table_is_asked_for_no_more_than_one_with_rows(
    link: SlowLink, location: LakeLocation, tmp_path: Path
) -> None:
    """All columns of each in one statement: what is asked of a table does not grow with its columns."""
    with closing(LakeStore.open_lake(location, SystemClock(), tmp_path)) as store:
        upsert_jobs(store, [record(7, "alice")])
        full = asked(link, lambda: rows(store, "SELECT * FROM jobs WHERE job_id = 7 AND submit > 0"))
        empty = asked(link, lambda: rows(store, "SELECT * FROM actions WHERE job_id = 7 AND run_start > 0"))
        assert 0 < empty < 2 * full, "of 24 columns each would take two more"


def test_tables_of_an_older_lake_get_their_statistics(location: LakeLocation, tmp_path: Path) -> None:
    """A lake whose empty tables have none gets them when it is opened; what is written then is found, and counted."""
    with closing(LakeStore.open_lake(location, SystemClock(), tmp_path)) as store:
        for table in STATS:
            rows(store, f"DELETE FROM {CATALOG}.{table} WHERE table_id IN ({NEVER_WRITTEN})")  # noqa: S608
        assert len(without(store, STATS[1])) > 20
    with closing(LakeStore.open_lake(location, SystemClock(), tmp_path)) as store:
        others = [("arrived",)]  # to which hubs that stand by append
        assert [without(store, table) for table in STATS] == [others, others]
        upsert_jobs(store, [record(7, "alice"), record(8, "bob", start=HOUR + 60)])
        assert rows(store, "SELECT job_id FROM jobs WHERE start > 0 AND user = 'bob'") == [(8,)]
        bounds = (
            "SELECT min(job_id), max(job_id), min(start), max(start), min(user), count(exit_code), count(*) FROM jobs"
        )
        assert rows(store, bounds) == [(7, 8, HOUR, HOUR + 60, "alice", 2, 2)]


def without(store: HubStore, stats: str) -> list[tuple[object, ...]]:
    """Return the tables of which a table of statistics has no row."""
    known = f"SELECT table_id FROM {CATALOG}.{stats}"  # noqa: S608
    return rows(store, f"SELECT table_name FROM {CATALOG}.ducklake_table WHERE table_id NOT IN ({known})")  # noqa: S608

"""A store that DuckDB gives up: every handle knows it, and the next one who opens it has what was committed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.small_disk import disk_of

from gpuwaste.core.errors import StoreError
from gpuwaste.store.database import Database


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 8 MiB."""
    with disk_of(tmp_path / "disk", "8m") as disk:
        yield disk


def test_a_checkpoint_on_a_full_disk_is_known_to_every_handle(small_disk: Path) -> None:
    """DuckDB refuses the store after it; the next opening has all rows that were committed."""
    path = small_disk / "hub.duckdb"
    database = Database.open(path, "hub")
    other = database.cursor()
    database.execute("CREATE TABLE t AS SELECT hash(range)::VARCHAR AS s FROM range(1000)")
    database.execute("CHECKPOINT")
    database.execute("INSERT INTO t SELECT hash(range * 7)::VARCHAR FROM range(20000)")
    assert other.given_up == ""
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))
    with pytest.raises(StoreError, match="checkpoint"):
        database.execute("CHECKPOINT")
    with pytest.raises(StoreError, match="invalidated"):
        other.execute("SELECT 1")
    assert "checkpoint" in other.given_up
    assert other.given_up == database.given_up == other.cursor().given_up
    other.close()
    database.close()
    ballast.unlink()
    again = Database.open(path, "hub")
    assert again.execute("SELECT count(*) FROM t").fetchall() == [(21000,)]
    assert again.given_up == ""
    again.close()

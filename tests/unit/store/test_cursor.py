"""What a statement's rows say when DuckDB fails while they are fetched, and what a store says that is given up."""

import pytest

from gpuwaste.core.errors import StoreError
from gpuwaste.store.database import MEMORY, Database

LATE = "SELECT CASE WHEN i = 199999 THEN error('too late') ELSE i END FROM range(200000) t(i)"


def test_an_error_at_the_last_row_is_the_store_s() -> None:
    """DuckDB fails after it has given a cursor out: each way to fetch raises StoreError with the cause in one line."""
    database = Database.open(MEMORY, "hub")
    for fetch in ("fetchall", "fetchnumpy"):
        with pytest.raises(StoreError, match=r"^:memory:: Invalid Input Error: too late$"):
            getattr(database.execute(LATE), fetch)()
    cursor = database.execute(LATE)
    with pytest.raises(StoreError, match="too late"):
        while cursor.fetchmany(10_000):
            pass
    assert database.given_up == ""
    assert database.execute("SELECT 1 AS one").fetchone() == (1,)
    database.close()

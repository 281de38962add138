"""The hub's tables have the columns that the declarations of hours, jobs and verdicts give."""

from typing import Any

import pytest
from tests.unit.advisor.verdicts import verdict

from gpuwaste.advice.verdicts.verdict_store import VERDICT_COLUMNS
from gpuwaste.jobs.run_changes import JOB_COLUMNS, STEP_COLUMNS
from gpuwaste.ledger.hour_store import HOUR_COLUMNS, HOUR_KEY
from gpuwaste.store.database import MEMORY, Database
from gpuwaste.store.hub.json_rows import Columns
from gpuwaste.testing.hub_rows import hour

WIDE = {"UTINYINT": "BIGINT", "INTEGER": "BIGINT", "UTINYINT[]": "BIGINT[]", "INTEGER[]": "BIGINT[]"}


@pytest.mark.parametrize(
    ("table", "columns"),
    [("hours", HOUR_COLUMNS), ("jobs", JOB_COLUMNS), ("steps", STEP_COLUMNS), ("verdicts", VERDICT_COLUMNS)],
)
def test_a_table_has_the_columns_of_its_record(table: str, columns: Columns[Any]) -> None:
    """No migration was forgotten for a field, and none has a column that no field fills; numbers may be narrower."""
    db = Database.open(MEMORY, "hub")
    rows = db.execute("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [table]).fetchall()
    db.close()
    declared = {name: f"{kind[0]}[]" if isinstance(kind, list) else kind for name, kind in columns.types.items()}
    assert declared == {name: WIDE.get(kind, kind) for name, kind in rows}


def test_a_row_has_each_column() -> None:
    """Maps are lists in the order of their keys, a run key is its three parts, maps of maps are JSON."""
    row = HOUR_COLUMNS.row(hour(7, util_ms={50: 5, 3: 1}, unknown_ms={"gap": 2}))
    assert set(row) == set(HOUR_COLUMNS.types)
    assert set(HOUR_KEY) < set(row)
    assert (row["pct"], row["util_ms"], row["unknown_reason"], row["unknown_ms"]) == ([3, 50], [1, 5], ["gap"], [2])
    said = VERDICT_COLUMNS.row(verdict(1, quantiles={"walltime": {"0.5": 1.0}}, lines=("a\0",), user="\ud800"))
    assert set(VERDICT_COLUMNS.types) == {*said, "node", "taken_utc"}
    assert (said["quantiles"], said["lines"], said["user"]) == ('{"walltime": {"0.5": 1.0}}', ["a\\x00"], "\\ud800")

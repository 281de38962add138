"""A table in parts of some days: the number of rows per part, and a sum of their hashes, the same in file and lake.

DuckDB computes a row's hash from all its columns, in either store. A sum of hashes does not depend on the order of the
rows, and it changes with any value of any row: numbers with a fraction are compared exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from gpuwaste.core.errors import StoreError
from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database, TableColumn, schema_tables

Side = Literal["file", "lake"]
STRETCH_S: Final = 32 * DAY_S  # past rows are sorted by user within a stretch of this length
# The column by which a table is cut (the first that it has), and the width of a part. Stretches copied one after the
# other stay sorted by user. There are many hours, and only those of the last days change.
_CUTS: Final[Mapping[str, int]] = {
    "hour_utc": 4 * DAY_S,
    "day_utc": STRETCH_S,
    "at_utc_us": STRETCH_S * 1_000_000,
    "at_utc": STRETCH_S,
    "run_start": STRETCH_S,
    "day": STRETCH_S,
}
_LAST: Final = 20_000  # the last part has all later rows, so that implausible times do not make more parts


@dataclass(frozen=True, slots=True)
class PartSum:
    """The rows of a part, and the sum of their hashes as text: it has more than 64 bits."""

    rows: int
    hashes: str


class PartedTable:
    """One table of the hub's schema, in a database that has the file and the lake attached by these names."""

    def __init__(self, name: str, source: Side, target: Side) -> None:
        self.name = name
        self._source = source
        self._target = target
        self._columns = schema_tables("hub")[name]
        needed = {column.name for column in self._columns if not column.nullable}
        self._cut = next((name for name in _CUTS if name in needed), "")

    def rows(self, db: Database) -> int:
        """Return how many rows the source has. Raises StoreError."""
        return int(db.execute(f"SELECT count(*) FROM {self._at(self._source)}").fetchall()[0][0])  # noqa: S608

    def source_sums(self, db: Database) -> dict[int, PartSum]:
        """Return the sums of the source's parts, which the target must have. Raises StoreError."""
        return self._sums(db, self._source, "true")

    def target_sums(self, db: Database) -> dict[int, PartSum]:
        """Return the sums of the target's parts. Raises StoreError."""
        return self._sums(db, self._target, "true")

    def remove(self, db: Database, part: int) -> None:
        """Remove a part from the target. Raises StoreError."""
        db.execute(f"DELETE FROM {self._at(self._target)} WHERE {self._within(part)}")  # noqa: S608 names of ours

    def copy(self, db: Database, part: int) -> None:
        """Add a part's rows to the target, in the order of the source. Raises StoreError."""
        names = ", ".join(f'"{column.name}"' for column in self._columns)
        db.execute(
            f"INSERT INTO {self._at(self._target)} ({names}) SELECT {self._values(self._source)}"  # noqa: S608
            f" FROM {self._at(self._source)} WHERE {self._within(part)}"
        )

    def check(self, db: Database, part: int, expected: PartSum) -> None:
        """Compare a part with what is in the target now. Raises StoreError."""
        found = self._sums(db, self._target, self._within(part)).get(part, PartSum(0, ""))
        if found == expected:
            return
        if found.rows != expected.rows:
            raise StoreError(f"table {self.name}: the copy has {found.rows} rows instead of {expected.rows}")
        raise StoreError(f"table {self.name}: the copy has other values in {self._differing(db, part)}")

    def _differing(self, db: Database, part: int) -> str:
        """Return the columns of a part in which the two stores differ, as readable text."""
        found = [self._column_sums(db, side, part) for side in (self._source, self._target)]
        names = [column.name for column, here, there in zip(self._columns, *found, strict=True) if here != there]
        return ", ".join(names) or "which values are in one row"

    def _sums(self, db: Database, side: Side, which: str) -> dict[int, PartSum]:
        number = f'least(greatest("{self._cut}" // {_CUTS[self._cut]}, 0), {_LAST})' if self._cut else "0"
        found = db.execute(
            f"SELECT {number}, count(*), sum(hash({self._values(side)}))::VARCHAR"  # noqa: S608 names of ours
            f" FROM {self._at(side)} WHERE {which} GROUP BY ALL"
        ).fetchall()
        return {int(part): PartSum(rows, hashes) for part, rows, hashes in found}

    def _column_sums(self, db: Database, side: Side, part: int) -> tuple[str, ...]:
        sums = ", ".join(f"sum(hash({self._value(side, column)}))::VARCHAR" for column in self._columns)
        rows = db.execute(f"SELECT {sums} FROM {self._at(side)} WHERE {self._within(part)}").fetchall()  # noqa: S608
        return tuple(rows[0])

    def _within(self, part: int) -> str:
        if not self._cut:
            return "true"
        width = _CUTS[self._cut]
        first = f'"{self._cut}" >= {part * width}' if part > 0 else "true"
        return f'{first} AND "{self._cut}" < {(part + 1) * width}' if part < _LAST else first

    def _values(self, side: Side) -> str:
        return ", ".join(self._value(side, column) for column in self._columns)

    def _value(self, side: Side, column: TableColumn) -> str:
        """Return a column as it must be in the target: a lake cannot search by a text with NUL (core/text.py)."""
        if side == self._source and self._target == "lake" and column.kind == "VARCHAR":
            return f"replace(\"{column.name}\", chr(0), '\\x00')"
        return f'"{column.name}"'

    def _at(self, side: Side) -> str:
        return f'{side}."{self.name}"'

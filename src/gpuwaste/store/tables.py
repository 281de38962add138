"""The tables of a schema, as an empty file has them: declared once, for every kind of store."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache

from gpuwaste.store.database import MEMORY, Database, Schema


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its name, its type as DuckDB writes it, and whether it may be NULL."""

    name: str
    kind: str
    nullable: bool


@cache
def schema_tables(schema: Schema) -> Mapping[str, tuple[TableColumn, ...]]:
    """Return the columns of each table of this version's schema, `schema_version` too, in their order."""
    with closing(Database.open(MEMORY, schema)) as file:
        found = file.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() WHERE NOT internal"
            " ORDER BY table_name, column_index"
        ).fetchall()
    tables: dict[str, list[TableColumn]] = {}
    for table, *column in found:
        tables.setdefault(table, []).append(TableColumn(*column))
    return {table: tuple(columns) for table, columns in tables.items()}

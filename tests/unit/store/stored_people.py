"""Stores in which every column with text of every table is filled, and what they hold as text."""

from typing import Any

import duckdb

from gpuwaste.store.database import Database, TableColumn, schema_tables
from gpuwaste.store.hub.data_inventory import INVENTORY, Text, is_text

NOT_FILLED = {"schema_version"}


def fill(db: Database, user: str, number: int, *, mentions: str = "") -> None:
    """Add a row of a user to each table; texts that can name others name `mentions`, the user where it is empty."""
    for table, columns in schema_tables("hub").items():
        if table in NOT_FILLED:
            continue
        values = [_value(table, column, user, number, mentions or user) for column in columns]
        names = ", ".join(f'"{column.name}"' for column in columns)
        marks = ", ".join(_literal(column) for column in columns)
        db.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', values)  # noqa: S608 names of ours


def _literal(column: TableColumn) -> str:
    if column.kind.startswith("STRUCT"):
        return f"?::{column.kind}"
    return "MAP {?: 0.5}" if column.kind.startswith("MAP") else "?"


def _value(table: str, column: TableColumn, user: str, number: int, mentioned: str) -> Any:
    if column.kind.startswith("STRUCT"):
        return {name: None for name, _ in duckdb.sqltype(column.kind).children}
    if not is_text(column.kind):
        numbers = {"BOOLEAN": False, "DOUBLE": 1.5}
        return [number] if column.kind.endswith("[]") else numbers.get(column.kind, number)
    kind = INVENTORY[table].texts[column.name]
    texts = {
        Text.PERSON: user, Text.ACCOUNT: user, Text.TYPED: f"{column.name} in /home/{mentioned}/x",
        Text.MENTION: f'{{"user": "{mentioned}", "x": "{column.name}"}}',
    }  # fmt: skip
    text = texts.get(kind, f"site{number}")
    return [text] if column.kind.endswith("[]") else text


def texts(db: Database) -> dict[str, list[str]]:
    """Return each row of each table of the schema as text."""
    return {
        table: [repr(row) for row in db.execute(f'SELECT * FROM "{table}"').fetchall()]  # noqa: S608 names of ours
        for table in schema_tables("hub")
    }


def named(db: Database, name: str) -> dict[str, int]:
    """Return the tables with rows that have a text in them, with their number."""
    counted = {table: sum(name in row for row in rows) for table, rows in texts(db).items()}
    return {table: number for table, number in counted.items() if number}

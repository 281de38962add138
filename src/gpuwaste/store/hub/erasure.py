"""Erasure: removes one user's name, and what they typed, from every table of the hub's store (data_inventory.py).

Rows of the user: their name becomes `erased`, what they typed is emptied, or the row is deleted. Rows of others: the
name is replaced in texts, or the row is deleted. Numbers are kept, so that sums are the same before and after.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.errors import UsageError
from gpuwaste.core.text import storable
from gpuwaste.store.database import Database, TableColumn, schema_tables
from gpuwaste.store.hub.data_inventory import INVENTORY, Erase, StoredTable, Text
from gpuwaste.store.hub.row_deletion import delete_rows, rows_of

_RUN: Final = ("cluster", "job_id", "run_start")
_LAST: Final = "jobs"  # identifies rows of other tables as the user's
_SEARCHED: Final = {"VARCHAR": "{}", "VARCHAR[]": "array_to_string({}, chr(10))"}  # how texts of a type are searched
_OTHER_SEARCHED: Final = "{}::VARCHAR"
_PAGE: Final = 256
_MOST_CHARACTERS: Final = 16 << 20  # of texts that are processed together
_ERASED: Final = "erased"
_MAX_NAME: Final = 256  # characters
_LETTER: Final = "[A-Za-z0-9_]"


@dataclass(frozen=True, slots=True)
class ErasedTable:
    """How many rows of a table belonged to the user, how many other texts named them, and whether rows were deleted."""

    table: str
    own: int
    own_deleted: bool
    mentions: int
    mentions_deleted: bool


@dataclass(frozen=True, slots=True)
class NameLeft:
    """Rows in which a name of the site equals or contains the user's: they are not changed."""

    table: str
    column: str
    rows: int


class Erasure:
    """One user's erasure from an open store, in the caller's transaction."""

    def __init__(self, db: Database, user: str) -> None:
        """Raise UsageError where `user` is not a user name."""
        self._db = db
        self._person = PersonName(user)  # its spellings find the names that contain it
        self._person = PersonName(user, self._other_names())
        self._values: dict[str, Any] = {"user": self._person.name, "erased": _ERASED}
        self._values |= {f"form_{number}": form for number, form in enumerate(self._person.forms)}

    def erase(self) -> list[ErasedTable]:
        """Erase the user; return the tables that had rows to change. Raises StoreError."""
        self._note_runs()
        self._db.run("erased_days", {"erased": _ERASED}).fetchall()
        tables = sorted(INVENTORY, key=lambda name: name == _LAST)
        done = [self._erase_from(name, INVENTORY[name]) for name in tables if INVENTORY[name].personal]
        return sorted((one for one in done if one.own or one.mentions), key=lambda one: one.table)

    def left(self) -> list[NameLeft]:
        """Return where the name remains: names assigned by Slurm or the administrators. Raises StoreError."""
        found = []
        for table, stored in INVENTORY.items():
            for column in stored.texts:
                rows = sum(rows for text, rows in self._counted(table, column) if self._named(text))
                if rows:
                    found.append(NameLeft(table, column, rows))
        return found

    def _erase_from(self, name: str, stored: StoredTable) -> ErasedTable:
        deletes_own, deletes_other = stored.own_rows is Erase.DELETE, stored.other_rows is Erase.DELETE
        own = 0
        if stored.owner:
            own = (self._delete if deletes_own else self._blank)(name, _whose(stored))
        mentions = 0
        for column in stored.of(Text.PERSON, Text.TYPED, Text.MENTION):
            if column != "user" or deletes_other:
                mentions += self._forget_mentions(name, column, deletes=deletes_other)
        return ErasedTable(name, own, deletes_own, mentions, deletes_other)

    def _note_runs(self) -> None:
        """Collect the user's runs, from every table that has the owner of a run."""
        names = [name for name, stored in INVENTORY.items() if stored.owner == "user" and _has_run(name)]
        keys = ", ".join(_RUN)
        runs = " UNION ".join(
            f'SELECT {keys} FROM "{name}" WHERE "user" = $user AND job_id <> 0'  # noqa: S608 names of ours
            for name in names
        )
        self._db.execute(f"CREATE OR REPLACE TEMP TABLE erased_runs AS {runs}", {"user": self._person.name})

    def _other_names(self) -> list[str]:
        """Return the users' names that contain this one."""
        columns = [(name, one) for name, stored in INVENTORY.items() for one in stored.of(Text.PERSON)]
        names = " UNION ".join(f'SELECT "{one}" AS name FROM "{name}"' for name, one in columns)  # noqa: S608
        found = self._db.execute(f"FROM ({names}) WHERE contains(name, ?) AND name <> ?", [self._person.name] * 2)
        return [name for (name,) in found.fetchall()]

    def _delete(self, table: str, condition: str) -> int:
        return delete_rows(self._db, table, condition, self._values)

    def _blank(self, table: str, condition: str) -> int:
        """Empty what the user typed in their rows, and replace their name there."""
        stored, kinds = INVENTORY[table], _kinds(table)
        empty = {column: stored.blank.get(column) or _empty(kinds[column]) for column in stored.of(Text.TYPED)}
        sets = {c: f'CASE WHEN "{c}" IS NOT NULL THEN {value} END' for c, value in empty.items()}
        changes = [f'"{column}" <> {value}' for column, value in empty.items()]
        values = dict(self._values)
        for column in stored.of(Text.ACCOUNT):
            found = self._db.execute(
                f'SELECT DISTINCT "{column}" FROM "{table}" WHERE {condition}',  # noqa: S608 names of ours
                {"user": self._person.name} if "$user" in condition else {},
            ).fetchall()
            values[f"of_{column}"] = [one for (one,) in found if self._person.is_in(one)]
            named = f'list_contains($of_{column}::VARCHAR[], "{column}")'
            sets[column] = f'CASE WHEN {named} THEN $erased ELSE "{column}" END'
            changes.append(named)
        if stored.owner == "user":
            sets["user"], changes = "$erased", ["true"]
        written = ", ".join(f'"{column}" = {value}' for column, value in sets.items())
        change = f'UPDATE "{table}" SET {written} WHERE ({condition}) AND ({" OR ".join(changes)})'  # noqa: S608
        return rows_of(self._db, change, values)

    def _forget_mentions(self, table: str, column: str, *, deletes: bool) -> int:
        """Replace the name in a column, or delete the rows that have it there; in batches of texts."""
        kind, rows = _kinds(table)[column], 0
        for old in self._parts(table, column):
            named = [text for text in old if self._named(text)]
            if not named:
                continue
            self._db.execute(
                f"CREATE OR REPLACE TEMP TABLE erased_texts AS SELECT unnest($old::{kind}[]) AS old,"
                f" unnest($new::{kind}[]) AS new",
                {"old": named, "new": [self._erased(text) for text in named]},
            )
            if deletes:
                rows += self._delete(table, f'"{column}" IN (SELECT old FROM erased_texts)')  # noqa: S608
            else:
                change = f'UPDATE "{table}" SET "{column}" = e.new FROM erased_texts e WHERE "{column}" = e.old'  # noqa: S608
                rows += rows_of(self._db, change, {})
        return rows

    def _parts(self, table: str, column: str) -> Iterator[list[Any]]:
        """Yield the texts of a column that may have the name, each once, in batches that fit into memory."""
        last: list[Any] = []
        while True:
            after = f'AND "{column}" > $last::{_kinds(table)[column]}' if last else ""
            query = (
                f'SELECT DISTINCT "{column}" AS text FROM "{table}" WHERE {self._may_have(table, column)} {after}'  # noqa: S608
                " ORDER BY text"
            )
            cursor = self._db.execute(query, self._forms() | ({"last": last[0]} if last else {}))
            part, size = [], 0
            while size < _MOST_CHARACTERS and (page := cursor.fetchmany(_PAGE)):
                part += [text for (text,) in page]
                size += sum(len(str(text)) for (text,) in page)
            if not part:
                return
            yield part
            last = [part[-1]]

    def _counted(self, table: str, column: str) -> list[tuple[Any, int]]:
        return self._db.execute(
            f'SELECT "{column}", count(*) FROM "{table}" WHERE {self._may_have(table, column)} GROUP BY ALL',  # noqa: S608
            self._forms(),
        ).fetchall()

    def _forms(self) -> dict[str, str]:
        return {name: value for name, value in self._values.items() if name.startswith("form_")}

    def _may_have(self, table: str, column: str) -> str:
        """Return the condition that a text contains a spelling of the name."""
        text = _SEARCHED.get(_kinds(table)[column], _OTHER_SEARCHED).format(f'"{column}"')
        return "(" + " OR ".join(f"contains({text}, ${name})" for name in self._forms()) + ")"

    def _named(self, text: Any) -> bool:
        return any(map(self._person.is_in, text)) if isinstance(text, list) else self._person.is_in(str(text))

    def _erased(self, text: Any) -> Any:
        return [self._person.erased(one) for one in text] if isinstance(text, list) else self._person.erased(text)


def _whose(stored: StoredTable) -> str:
    """Return the condition that a row belongs to the user."""
    if stored.owner == "user":
        return '"user" = $user'
    return f"({', '.join(_RUN)}) IN (SELECT ({', '.join(_RUN)}) FROM erased_runs)"  # noqa: S608 names of ours


def _kinds(table: str) -> Mapping[str, str]:
    return {column.name: column.kind for column in _columns(table)}


def _has_run(table: str) -> bool:
    return set(_RUN) <= {column.name for column in _columns(table)}


def _columns(table: str) -> tuple[TableColumn, ...]:
    return schema_tables("hub")[table]


def _empty(kind: str) -> str:
    return "[]" if kind.endswith("[]") else "''"


class PersonName:
    """The name of one user; `others` are names of users who are kept."""

    def __init__(self, name: str, others: Iterable[str] = ()) -> None:
        """Raise UsageError where it is not a user name."""
        if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
            raise UsageError(f"user {name[:40]!r}: expected a name of 1 to {_MAX_NAME} printable characters")
        if name == _ERASED:
            raise UsageError(f"user {_ERASED!r}: this is the name of erased users in the store")
        self.name = storable(name)
        self.forms = _forms(self.name)
        """The spellings: plain, and as written inside JSON."""
        word = _word(self.forms)
        longer = [form for other in others if other != name and word.search(other) for form in _forms(storable(other))]
        self._pattern = _word(self.forms, longer)

    def is_in(self, text: str) -> bool:
        """Return whether a text names the user."""
        return self.erased(text) != text

    def erased(self, text: str) -> str:
        """Return a text without the name."""
        return self._pattern.sub(lambda match: match[0] if match["other"] else _ERASED, text)


def _forms(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name, json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1])))


def _word(forms: Iterable[str], longer: Iterable[str] = ()) -> re.Pattern[str]:
    """Return the pattern of a word; names that contain it are found first, as the group `other`."""
    other, own = ("|".join(map(re.escape, sorted(found, key=len, reverse=True))) for found in (longer, forms))
    return re.compile(f"(?<!{_LETTER})(?:(?P<other>{other or '(?!)'})|(?:{own}))(?!{_LETTER})")

"""Notes about rows of a store's files that could not be read: sums without them are incomplete."""

from collections.abc import Mapping
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.jobs.importers.history_store import source_notes, unread_fields
from gpuwaste.store.database import Database

_MOST_NOTES: Final = 10
_LONGEST_NAME: Final = 80
_LONGEST_REASON: Final = 200


def unread_rows(db: Database) -> list[str]:
    """Return a note for each source with rows that could not be read, and for each of its unknown fields."""
    notes = list[str]()
    for source in db.rows("unread_rows"):
        name = _file_name(source["key"])
        if source["bad"]:
            notes.append(_rows_note(name, source["bad"], source["line"], source["reason"]))
        notes += _field_notes(name, source_notes(db, source["key"])[1])
    more = len(notes) - _MOST_NOTES
    return notes if more <= 0 else [*notes[:_MOST_NOTES], f"{more} more such notes: run gpuwaste history status."]


def _file_name(key: str) -> str:
    """Return the file's own name of a source's key, KIND:PATH."""
    return harmless(key.rpartition("/")[2] or key)[:_LONGEST_NAME]


def _rows_note(name: str, bad: int, line: int | None, reason: str | None) -> str:
    rows, jobs = ("1 row", "its job is") if bad == 1 else (f"{bad} rows", "their jobs are")
    first = "" if reason is None else f" The first is line {line}: {harmless(reason)[:_LONGEST_REASON]}."
    return f"{rows} of {name} could not be read: {jobs} not counted here.{first}"


def _field_notes(name: str, counted: Mapping[str, int]) -> list[str]:
    return [
        f"{field} cannot be read in {runs} {'run' if runs == 1 else 'runs'} of {name}: it is unknown there."
        for field, runs in unread_fields(counted).items()
    ]

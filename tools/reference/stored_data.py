"""stored-data.md, from the inventory of the hub's store."""

from typing import Final

from gpuwaste.store.hub.data_inventory import INVENTORY, Erase, Retention, StoredTable, Text
from tools.reference.markdown import code, document, table

_INTRO: Final = """
The tables of the hub's store, the same in a file and in a lake: the columns that can name a person or hold what a user
typed, how long rows are kept, and what `gpuwaste hub erase` does ([how to](../how-to/erase.md)). The page on
[privacy](../explanation/privacy.md) says what is stored elsewhere.
"""
_PERSONAL: Final = (Text.PERSON, Text.ACCOUNT, Text.TYPED, Text.MENTION)


def page() -> str:
    """Return the page: a table of the tables that can name a person, a list of the others."""
    header = ("table", *(str(kind) for kind in _PERSONAL), "kept", "a user who is erased")
    rows = [_row(name, stored) for name, stored in sorted(INVENTORY.items()) if stored.personal]
    others = [(code(name), _kept(stored)) for name, stored in sorted(INVENTORY.items()) if not stored.personal]
    return document(
        "Stored data", _INTRO, "## Tables that can name a person", table(header, rows),
        "## Other tables", "Their texts are names of the site (clusters, nodes, partitions) and words of gpuwaste.",
        table(("table", "kept"), others),
    )  # fmt: skip


def _row(name: str, stored: StoredTable) -> tuple[str, ...]:
    columns = (", ".join(code(column) for column in stored.of(kind)) for kind in _PERSONAL)
    return code(name), *columns, _kept(stored), _erased(stored)


def _kept(stored: StoredTable) -> str:
    kept = stored.kept
    if not isinstance(kept, Retention):
        return kept
    section, key = kept.days.split(".")
    return f"`[{section}] {key}` days after `{kept.column}`"


def _erased(stored: StoredTable) -> str:
    others = f"others' rows that name them: {_words(stored.other_rows)}"
    return f"their rows: {_words(stored.own_rows)}; {others}" if stored.owner else others


def _words(what: Erase) -> str:
    return "deleted" if what is Erase.DELETE else "name and texts replaced"

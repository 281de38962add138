"""What can be fetched: name, SHA-256 and size of the plain content, the form in which it is published, where, terms."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CATALOG: Final = Path(__file__).with_name("catalog.tsv")
FORMS: Final = ("plain", "gzip")


@dataclass(frozen=True, slots=True)
class Item:
    """One file; a name that ends in .xz is packed so here, whatever its published form."""

    name: str
    sha256: str
    size: int
    form: str
    url: str
    terms: str


def read_catalog(path: Path = CATALOG) -> Sequence[Item]:
    """Return the files in their order. Raises ValueError where a line is not one."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_item(row) for row in csv.DictReader(file, delimiter="\t")]


def _item(row: dict[str, str]) -> Item:
    item = Item(row["name"], row["sha256"], int(row["bytes"]), row["form"], row["url"], row["terms"])
    if item.form not in FORMS or Path(item.name).is_absolute() or ".." in Path(item.name).parts:
        raise ValueError(f"{item.name}: no file of a catalogue")
    return item

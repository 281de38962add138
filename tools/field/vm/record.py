"""What the last run in the virtual machine gave, kept with the sources for the page that tells of it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ParseError
from tools.matrix.table import Column, Result
from tools.trees import store

RECORD: Final = store.REPOSITORY / "docs" / "field-vm-measured.json"


def save(path: Path, column: Column) -> None:
    """Write what a run gave, its system and each check with its seconds and why it failed, over what was there.

    Checks that this run did not have stay, unless they are of another system. Raises ParseError.
    """
    system, earlier = read(path) if path.exists() else (column.version, ())
    found = {result.check: result for result in (*(earlier if system == column.version else ()), *column.results)}
    results = [asdict(result) | {"seconds": round(result.seconds, 1)} for result in found.values()]
    text = json.dumps({"system": column.version, "results": results}, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")


def read(path: Path = RECORD) -> tuple[str, tuple[Result, ...]]:
    """Return the system and the results that `save` wrote. Raises ParseError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return str(data["system"]), tuple(Result(**row) for row in data["results"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParseError(f"{path}: no results of the virtual machine ({error})") from error

"""A store of 0.1, opened by today's code, gives the numbers that 0.1 gave (tools/upgrade_fixture.py)."""

import json
import lzma
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.documents.report import job_document, report_document, top_document
from gpuwaste.store.database import Database
from gpuwaste.waste.settings import LedgerSettings

FIXTURE = Path(__file__).parents[2] / "fixtures/upgrade-0.1"
SAID = json.loads(lzma.decompress((FIXTURE / "documents.json.xz").read_bytes()))
NOW = SAID["now"]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Yield a copy of the store of 0.1, migrated."""
    path = tmp_path_factory.mktemp("upgrade") / "hub.duckdb"
    path.write_bytes(lzma.decompress((FIXTURE / "store.duckdb.xz").read_bytes()))
    database = Database.open(path, "hub")
    yield database
    database.close()


def answered(db: Database, question: dict[str, Any]) -> Any:
    """Return today's document."""
    asked = {name: value for name, value in question.items() if name not in {"document", "window"}}
    settings = LedgerSettings()
    if question["document"] == "report":
        scope, name, start, end = (asked.pop(part) for part in ("scope", "name", "start", "end"))
        return report_document(db, scope, name, start, end, settings, NOW, **asked).to_json()
    if question["document"] == "top":
        return top_document(db, asked.pop("since"), settings, NOW, **asked).to_json()
    found = job_document(db, asked.pop("printed_id"), settings, NOW)
    return None if found is None else found.to_json()


def differences(said: Any, now: Any, where: str = "") -> Iterator[str]:
    """Yield what today's document lacks or says otherwise; floats may differ in the last digits."""
    if isinstance(said, dict) and isinstance(now, dict):
        for name, value in said.items():
            yield from differences(value, now.get(name, "absent"), f"{where}.{name}")
    elif isinstance(said, list) and isinstance(now, list | tuple) and len(said) == len(now):
        for number, (one, other) in enumerate(zip(said, now, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif isinstance(said, float) and isinstance(now, int | float):
        if not math.isclose(said, now, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{where}: {said} is now {now}"
    elif said != now:
        yield f"{where}: {said!r} is now {now!r}"


@pytest.mark.parametrize("number", range(len(SAID["documents"])))
def test_every_number_of_0_1_is_kept(db: Database, number: int) -> None:
    """Each number of each document of 0.1 is in today's document of the same question."""
    case = SAID["documents"][number]
    assert list(differences(case["answer"], answered(db, case["question"]))) == []

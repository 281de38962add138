"""A store of 0.1, opened by today's code, gives the numbers that 0.1 gave (tools/upgrade_fixture.py)."""

import json
import lzma
import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.core.cluster_account import ClusterAccount
from gpuwaste.jobs.job_columns import clusters
from gpuwaste.ledger.ledger_settings import LedgerSettings
from gpuwaste.ledger.reports.report import job_document, report_document, top_document
from gpuwaste.store.database import Database

FIXTURE = Path(__file__).parents[3] / "fixtures/upgrade-0.1"
REWORDED = {  # texts of 0.1 that read otherwise today; the numbers in them are compared all the same
    r"the (\d+ GPUs?) stood idle for": r"\1 idle for",
    "end the job with its work": "end the job when its work is done",
    "a hang, most likely;": "probably a hang;",
    "leave the shell when": "exit the shell when",
    "run them side by side on": "run them concurrently on",
    "what is said of them is provisional": "their figures are provisional",
    "accounting gave them: the others do not count": "accounting has for them: the additional ones are not counted",
    "GPUs on which the sources": "GPUs about which the sources",
    "device map disagree: unknown": "device map disagree: their time is unknown",
    "lie partly outside of the time asked for: totals have": "partly outside the requested time: totals contain",
    "lines of jobs the whole run": "job lines the full run",
}
TEXT = lzma.decompress((FIXTURE / "documents.json.xz").read_bytes()).decode()
for was, today in REWORDED.items():
    TEXT = re.sub(was, today, TEXT)
SAID = json.loads(TEXT)
NOW = SAID["now"]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Yield a copy of the store of 0.1, migrated."""
    path = tmp_path_factory.mktemp("upgrade") / "hub.duckdb"
    path.write_bytes(lzma.decompress((FIXTURE / "store.duckdb.xz").read_bytes()))
    database = Database.open(path, "hub")
    yield database
    database.close()


CUT = "partly outside the requested time"
HELD = """
SELECT "user", sum(gpus * (least(coalesce("end", $now), $end) - greatest("start", $start)))::DOUBLE
FROM jobs
WHERE gpus > 0 AND "start" < $end AND ("end" IS NULL OR "end" > $start)
    AND $name IN ('', CASE $scope WHEN 'cluster' THEN cluster WHEN 'account' THEN account ELSE "user" END)
GROUP BY ALL
"""


def answered(db: Database, question: dict[str, Any]) -> Any:
    """Return today's document."""
    asked = {name: value for name, value in question.items() if name not in {"document", "window"}}
    settings = LedgerSettings()
    if "accounts" in asked:  # 0.1 meant these accounts in each cluster
        asked["accounts"] = [ClusterAccount(cluster, name) for cluster in clusters(db) for name in asked["accounts"]]
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


def is_cut(question: dict[str, Any]) -> bool:
    """Tell whether an edge of the report's window cuts runs."""
    return bool(question["document"] == "report" and question["window"] != "all")


PROPOSALS = {"fix"}  # of findings: what to change is advice, and better today
TITLES = re.compile(r"(idle for the last .* of the run): .*")


def figures_of(finding: dict[str, Any]) -> dict[str, Any]:
    """Return a finding without what it proposes."""
    known = {name: value for name, value in finding.items() if name not in PROPOSALS}
    return known | {"title": TITLES.sub(r"\1", known["title"])}


@pytest.mark.parametrize("number", range(len(SAID["documents"])))
def test_every_number_of_0_1_is_kept(db: Database, number: int) -> None:
    """Each number of each document of 0.1 is in today's document of the same question.

    0.1 counted runs whole where an edge of the window cuts them; their time is cut now, so these sums are left to the
    tests below. Counts, the lines of jobs, levels and findings are still of whole runs.
    """
    case = SAID["documents"][number]
    said, now = case["answer"], answered(db, case["question"])
    for document in (said, now):
        if document and "findings" in document:
            document["findings"] = [figures_of(finding) for finding in document["findings"]]
    if is_cut(case["question"]):
        assert list(differences(said["shared"]["devices"], now["shared"]["devices"], "shared")) == []
        for document in (said, now):
            del document["totals"], document["shared"]
            document["notes"] = [note for note in document["notes"] if CUT not in note]
            document["users"] = {
                row["user"]: {name: row[name] for name in ("accounts", "jobs", "running", "under_used", "devices")}
                for row in document["users"]
            }
    assert list(differences(said, now)) == []


@pytest.mark.parametrize("question", [case["question"] for case in SAID["documents"] if is_cut(case["question"])])
def test_time_is_cut_at_the_edges(db: Database, question: dict[str, Any]) -> None:
    """The GPU-time of the totals and of each user is that of accounting's intervals between the edges."""
    asked = {key: question[key] for key in ("start", "end", "scope", "name")}
    expected = dict(db.execute(HELD, {"now": NOW, **asked}).fetchall())
    document = answered(db, question)
    assert {row["user"]: row["gpu_s"] for row in document["users"] if row["gpu_s"]} == expected
    assert document["totals"]["gpu_s"] == sum(expected.values())


def test_windows_add_up_to_what_0_1_said_of_the_whole(db: Database) -> None:
    """Each class, waste and exempt time of windows that follow each other add up to 0.1's sums over all time."""
    case = next(case for case in SAID["documents"] if case["question"]["window"] == "all")
    asked = case["question"]
    edges = [asked["start"], NOW - 33 * 86400 + 5000, NOW - 12 * 86400 - 1, NOW - 7 * 86400, NOW - 5000, asked["end"]]
    parts = [answered(db, {**asked, "start": start, "end": end}) for start, end in pairwise(edges)]
    for what in ("totals", "shared"):
        for name, said in case["answer"][what].items():
            if name.endswith("by_reason_s"):
                found = {key: sum(part[what][name].get(key, 0) for part in parts) for key in said}
                assert found == pytest.approx(said, abs=0.1), name
            elif name.endswith("_s") or name == "energy_j":
                assert sum(part[what][name] or 0 for part in parts) == pytest.approx(said or 0, abs=0.1), name

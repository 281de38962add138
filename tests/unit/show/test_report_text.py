"""The text reports: golden texts, 80 columns, and names that do no harm."""

from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from tests.unit.ledger.builders import SETTINGS, T0
from tests.unit.show.documents import END, hostile, now, one_job, read, report, top, week

from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.now.now_text import now_text
from gpuwaste.ledger.reports.job_text import job_text
from gpuwaste.ledger.reports.report_builder import Clusters, report_document
from gpuwaste.ledger.reports.report_text import report_text, top_text
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import width

GOLDEN = Path(__file__).parent / "golden"
LOOK = Look(zone=UTC)


TEXTS: dict[str, Callable[[], str]] = {
    "report-user": lambda: report_text(read(report()), LOOK),
    "report-cluster": lambda: report_text(read(report(scope="cluster", name="")), LOOK),
    "job": lambda: job_text(read(one_job()), LOOK),
    "job-requeued": lambda: job_text(read(one_job("40")), LOOK),
    "job-running": lambda: job_text(read(one_job("70")), LOOK),
    "top": lambda: top_text(read(top()), LOOK),
    "now": lambda: now_text(read(now()), LOOK),
}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_text_is_the_golden_one(name: str) -> None:
    """Each report prints what tests/unit/show/golden holds, to the character."""
    assert TEXTS[name]() == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("scope", "name", "title"),
    [
        ("user", "alice", "GPU use of user alice in gw, gw2"),
        ("cluster", "gw,gw2", "GPU use of clusters gw, gw2"),
        ("cluster", "", "GPU use of all clusters: gw, gw2"),
    ],
)
def test_a_report_of_several_clusters_names_them_with_a_row_for_each(scope: Any, name: str, title: str) -> None:
    """The title has the clusters, and a table their sums, within 80 columns."""
    clusters = Clusters(("gw", "gw2"))
    document = report_document(week(), scope, name, T0, END, SETTINGS, END, clusters=clusters)
    lines = report_text(document, LOOK).splitlines()
    assert any(title in line for line in lines[:3])
    header = next(n for n, line in enumerate(lines) if line.endswith("CLUSTER"))
    rows = [line.split() for line in lines[header + 1 : header + 3]]
    assert [(row[0], row[-1]) for row in rows] == [(str(document.job_count), "gw"), ("0", "gw2")]
    assert max(map(width, lines)) <= 80


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_report_has_80_columns(name: str) -> None:
    """No line is wider than a terminal."""
    assert max(width(line) for line in TEXTS[name]().splitlines()) <= 80


def test_hostile_names_stay_text_and_80_columns() -> None:
    """Escapes, line breaks, wide and endless names change neither the layout nor the terminal."""
    db = hostile()
    rendered = [
        report_text(read(report(db, "cluster", "")), LOOK),
        *(job_text(read(one_job(str(job_id), db)), LOOK) for job_id in range(100, 105)),
    ]
    for text in rendered:
        cut = [line for line in text.splitlines() if "  Nodes:" not in line]  # a list of nodes is copied: never cut
        assert max(map(width, cut)) <= 80
        assert len(cut) >= len(text.splitlines()) - 1
        assert not any(c < " " and c != "\n" for c in text)


def test_a_recording_is_labelled_in_every_table() -> None:
    """Each title and heading of a recording says so."""
    db = week()
    db.execute("INSERT INTO marks VALUES ('recorded', 1)")
    texts_of: dict[str, Any] = {"report": report_text, "job": job_text}
    for kind, document in (("report", report(db)), ("job", one_job(db=db))):
        assert document["recorded"]
        text = texts_of[kind](read(document), Look(zone=UTC, recorded=True))
        headings = [line for line in text.splitlines() if line and line[0] not in " =" and "[" not in line]
        assert headings == []
        assert text.count("[recorded]") >= 4


def test_colour_only_where_asked() -> None:
    """Without colour there is no escape sequence, with it there is."""
    assert "\x1b" not in report_text(read(report()), LOOK)
    assert "\x1b[" in report_text(read(report()), Look(zone=UTC, colour=True))


def test_unknown_is_never_printed_as_nothing() -> None:
    """A job that no agent saw has dashes for waste and mean, and 100 % unknown."""
    db = week()
    db.execute("DELETE FROM hours")
    document = report(db)
    line = next(line for line in report_text(read(document), LOOK).splitlines() if "resnet50" in line)
    assert line.split() == ["7", "CD", "4", "4.0", "-", "-", "-", "100", "%", "resnet50"]
    assert "unknown" in report_text(read(document), LOOK)


def test_no_header_leaves_the_rows() -> None:
    """With -n titles, headings and column names go."""
    text = report_text(read(report()), Look(zone=UTC, header=False))
    assert "JOBID" not in text
    assert "====" not in text
    assert "resnet50" in text


def test_the_note_ends_in_the_line_to_use() -> None:
    """The job that used one of four GPUs is told the exact line."""
    lines = job_text(read(one_job()), LOOK).splitlines()
    assert "        #SBATCH --gres=gpu:a100:1" in lines


def test_thresholds_of_the_text_are_those_of_the_document() -> None:
    """The text explains the levels by the thresholds that judged them."""
    document: dict[str, Any] = report()
    document["thresholds"]["high_above_pct"] = 70.0
    assert LedgerSettings().high_above_pct == 66.0
    assert "above 70 %" in report_text(read(document), LOOK)

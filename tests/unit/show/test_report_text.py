"""The text reports: golden texts, 80 columns, and names that do no harm."""

from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.ledger.builders import SETTINGS, T0
from tests.unit.show.documents import END, hostile, now, one_job, read, report, top, week

from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.now.now_text import now_text
from gpuwaste.ledger.reports.job_text import job_text
from gpuwaste.ledger.reports.job_types import RunTime
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
    """No line is wider than a terminal of 80 columns, the width of an output that is no terminal."""
    assert max(width(line) for line in TEXTS[name]().splitlines()) <= 80


@pytest.mark.parametrize("columns", [40, 60, 120, 200])
def test_a_report_uses_the_width_of_the_terminal(columns: int) -> None:
    """From 40 to 200 columns each line fits; a wide terminal has the columns that 80 have no room for."""
    text = report_text(read(report(scope="cluster", name="")), Look(zone=UTC, columns=columns))
    assert max(map(width, text.splitlines())) <= columns
    assert ("MEMORY USE" in text) is (columns >= 120)


def test_what_to_do_comes_before_the_jobs_and_the_classes() -> None:
    """The worst job with its line is first, then the tables of users and jobs, one table of classes, other causes."""
    text = report_text(read(report(scope="cluster", name="")), LOOK)
    order = [
        "What to do first", "Job 7 of user alice", "#SBATCH --gres=gpu:a100:1", "Users, largest waste first",
        "Jobs, largest waste first", "GPU time by utilization", "More to improve", "Job 70", "Notes",
    ]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert text.count("Job 7 of") == text.count("CLASS ") == 1


def test_the_classes_add_up_as_printed() -> None:
    """The GPU-hours of the classes are the total below them, which is the sum in the head of the report."""
    document = read(report())
    lines = report_text(document, LOOK).splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("  CLASS"))
    last = next(place for place, line in enumerate(lines) if line.startswith("  total"))
    cells = [float(line.split()[1]) for line in lines[first + 1 : last]]
    assert len(cells) == 5
    assert round(sum(cells), 1) == float(lines[last].split()[1]) == round(document.totals.gpu_s / 3600, 1)


def test_energy_is_one_line_unless_asked_for() -> None:
    """kWh, cost and CO2e with their wasted parts; --energy prints each figure and the table of days."""
    energy = {
        "gpu_kwh": 10.0, "kwh": 12.0, "pue": 1.2, "measured_share": 1.0, "wasted_kwh": 5.0, "wasted_share": 0.4167,
        "currency": "EUR", "cost": 3.6, "wasted_cost": 1.5, "co2e_kg": 4.0, "wasted_co2e_kg": None,
    }  # fmt: skip
    document = read({**report(), "energy": energy})
    short, full = (report_text(document, LOOK, energy=wanted) for wanted in (False, True))
    line = "12.00 kWh (5.00 wasted), 3.60 EUR (1.50 wasted), 4.00 kg CO2e; details: --energy"
    assert line in " ".join(short.split())
    assert "PUE" not in short
    assert "PUE 1.2" in full
    assert "--energy" not in full


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


def test_a_job_that_waits_has_no_totals() -> None:
    """A job in the queue is printed with what is known of it: no figures, and unknown numbers as unknown."""
    document = read(one_job())
    waiting = replace(document.runs[0], start=None, end=None, state="PENDING", gpus=None, totals=RunTime())  # type: ignore[call-arg]
    text = job_text(replace(document, runs=[waiting], findings=[]), Look())
    assert "The job has not started." in text
    assert "unknown a100" in text
    assert "None" not in text

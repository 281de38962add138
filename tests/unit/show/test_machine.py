"""Documents for programs: every row on one line, no formula, no control character."""

import csv
import io
import json

import pytest
from tests.unit.show.documents import hostile, one_job, read, report, top, week

from gpuwaste.show.machine_formats import FORMULA, csv_rows, to_csv, to_json, to_parsable


def test_parsable_has_one_line_per_row_and_as_many_cells_as_columns() -> None:
    """Hostile names add neither lines nor cells."""
    for document in (report(hostile(), "cluster", ""), report(), one_job(), top()):
        header, *lines = to_parsable(read(document)).splitlines()
        rows = document["jobs"] if document["document"] != "job" else document["runs"][0]["devices"]
        assert len(lines) == len(rows)
        assert {len(line.split("|")) for line in lines} == {len(header.split("|"))}


def test_no_header() -> None:
    """-n leaves the rows alone."""
    document = report()
    assert to_parsable(read(document), header=False).splitlines() == to_parsable(read(document)).splitlines()[1:]
    assert to_csv(read(document), header=False).splitlines() == to_csv(read(document)).splitlines()[1:]


def test_no_cell_of_the_csv_is_a_formula() -> None:
    """A name that starts with = + - @ or a tab gets an apostrophe; numbers stay numbers."""
    rows = list(csv.DictReader(io.StringIO(to_csv(read(report(hostile(), "cluster", ""))))))
    assert len(rows) == 5
    for row in rows:
        assert not row["name"].startswith(("=", "+", "-", "@", "\t", "\r"))
        assert all(c.isprintable() for cell in row.values() for c in cell)
        assert float(row["gpu_s"]) == 3600
    assert any(row["name"] == "'-2+3" for row in rows)


DELIMITERS = ",;\t|"
NAMES = (
    "a;=1+1;b", "a; =1+1", 'a;"=1+1"', "a;;=1+1", "a|@SUM(1)", "a\t=1+1", ";-2+3", " =1+1", "a;\uff1d1+1", "x,=1+1",
    'a"";"";=1+1', "\u200b;+1", "a;'=1+1",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_is_a_formula_whatever_separates_them(name: str) -> None:
    """A spreadsheet may separate by ; (most of Europe), tab or |, and ignore blanks: no cell begins as a formula."""
    text = csv_rows(["user", "name", "n"], [{"user": "alice", "name": name, "n": -2}])
    for delimiter in DELIMITERS:
        cells = [cell for row in csv.reader(io.StringIO(text), delimiter=delimiter) for cell in row]
        begins = [cell.lstrip(' "') for cell in cells if cell != "-2"]
        assert not [cell for cell in begins if cell.startswith(FORMULA)], delimiter


def test_what_is_no_formula_is_as_it_is() -> None:
    """Names with separators and marks in the middle keep their text; negative numbers stay numbers."""
    rows = [{"name": name, "n": -2.5} for name in ("a-b;c=d", "lr=0.1", "x; y", "a|b", "mail@site")]
    found = list(csv.reader(io.StringIO(csv_rows(["name", "n"], rows, header=False))))
    assert found == [[row["name"], "-2.5"] for row in rows]


def test_unknown_is_an_empty_cell() -> None:
    """What is not known is empty in both formats and null in JSON, never 0."""
    db = week()
    db.execute("DELETE FROM hours")
    document = report(db)
    row = next(r for r in csv.DictReader(io.StringIO(to_csv(read(document)))) if r["jobid"] == "7")
    assert row["mean_util_pct"] == ""
    assert float(row["unknown_s"]) == 4 * 3600
    assert json.loads(to_json(document))["totals"]["mean_util_pct"] is None


def test_json_is_the_document_in_ascii() -> None:
    """JSON is the hub's document; no byte of it acts on a terminal."""
    document = report(hostile(), "cluster", "")
    text = to_json(document)
    assert json.loads(text) == document
    assert text.isascii()
    assert "\x1b" not in text

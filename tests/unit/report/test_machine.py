"""Documents for programs: every row on one line, no formula, no control character."""

import csv
import io
import json

from tests.unit.report.documents import hostile, one_job, read, report, top, week

from gpuwaste.report.machine import to_csv, to_json, to_parsable


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

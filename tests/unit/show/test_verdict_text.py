"""Verdicts and scores as text and for programs: what an operator reads, what a user does, nothing that acts."""

import csv
import io
import json
from datetime import UTC

from tests.unit.show.documents import one_job, read
from tests.unit.show.verdict_documents import AT, listed, score

from gpuwaste.advice.verdicts.verdict_text import score_text, verdicts_text
from gpuwaste.ledger.reports.job_text import job_text
from gpuwaste.show.layout import Look
from gpuwaste.show.machine_formats import to_csv, to_json, to_parsable

LOOK = Look(zone=UTC)


def test_an_operator_reads_what_was_said_and_what_was_held_back() -> None:
    """One line each: action, what it would have been, the job with its end, whether it was right; all in 80 columns."""
    lines = verdicts_text(read(listed()), Look(zone=UTC, columns=110)).splitlines()
    first, reject, _, shadow = (line.split() for line in lines[4:8])
    assert first == ["2023-11-15T12:00:01", "warn", "warn", "-", "site", "7", "F", "yes", "alice:", "train"]
    assert (reject[1], reject[5:8]) == ("reject", ["-", "rejected", "-"])
    assert (shadow[1:4], shadow[5:8]) == (["pass", "warn", "shadow"], ["-", "no", "job"])
    assert all(len(line) <= 110 for line in lines)
    narrow = verdicts_text(read(listed()), LOOK)
    assert "WOULD" in narrow
    assert all(len(line) <= 80 for line in narrow.splitlines())


def test_a_user_reads_what_he_was_told() -> None:
    """Without policy and mode, and with the very lines."""
    text = verdicts_text(read(listed(whole=False)), LOOK)
    assert "WOULD" not in text
    assert text.count("    gpuwaste: your last 4 jobs named train failed") == 3


def test_nothing_acts_on_the_terminal_or_in_a_spreadsheet() -> None:
    """Escapes of a job's name are written out, pipes and formulas are defused."""
    document = listed()
    document["verdicts"][0]["name"] = "=1+1"
    assert "\x1b" not in verdicts_text(read(document), LOOK)
    rows = list(csv.DictReader(io.StringIO(to_csv(read(document)))))
    assert rows[0]["name"] == "'=1+1"
    parsable = to_parsable(read(document)).splitlines()
    assert len({line.count("|") for line in parsable}) == 1
    assert json.loads(to_json(document)) == document


def test_a_user_s_rows_have_the_same_columns() -> None:
    """Programs read one shape; what is not his to see is empty."""
    mine, whole = (list(csv.DictReader(io.StringIO(to_csv(read(listed(whole=w)))))) for w in (False, True))
    assert mine[0].keys() == whole[0].keys()
    assert (mine[0]["would_be"], whole[0]["would_be"], mine[2]["job_ids"]) == ("", "warn", "9_1; 9_2")


def test_the_score_by_policy_and_week() -> None:
    """Ratios as percent, the week below the floor marked, false rejects and overrides in words, the calibration."""
    text = score_text(read(score()), Look(zone=UTC, columns=100))
    lines = text.splitlines()
    assert lines[4].split() == ["2026-W01", "30", "10", "10", "0", "8", "75", "%", "75", "%", "0", "0", "site"]
    assert lines[5].split() == ["2026-W02", "*", "9", "4", "0", "0", "4", "25", "%", "-", "2", "1", "site"]
    assert "fell back to shadow" in text
    flat = " ".join(text.split())
    assert "4 would-be rejects passed at random; 4 of these jobs have ended, 1 of them well (false rejects)" in flat
    assert "3 overrides; 2 of these jobs have ended, 1 of them well" in flat
    assert "failure: 28 verdicts, calibration error 6 %" in flat
    assert "80 % to 90 % 8 verdicts predicted 85 % observed 75 % ||||||||||||" in flat
    assert all(len(line) <= 80 for line in score_text(read(score()), LOOK).splitlines())


def test_a_score_for_programs() -> None:
    """A row for each policy and week with the counts and the ratios."""
    first, second = csv.DictReader(io.StringIO(to_csv(read(score()))))
    assert (first["precision"], first["recall"], first["false_rejects"]) == ("0.75", "0.75", "1")
    assert (second["week"], second["recall"], second["floored"]) == ("2026-W02", "", "3")


def test_a_job_shows_what_was_said_of_it() -> None:
    """The lines again, and for an operator what the user was not told, marked so; without advice nothing changes."""
    plain = job_text(read(one_job()), LOOK)
    assert job_text(read({**one_job(), "advice": []}), LOOK) == plain
    advice = [
        {"at": AT, "op": "submit", "action": "warn", "lines": ["likely to fail\x1b[2J"]},
        {"at": AT, "op": "modify", "action": "pass", "lines": ["hm"], "said": False, "would_be": "reject"},
    ]
    text = job_text(read({**one_job(), "advice": advice}), LOOK)
    assert "2023-11-15T12:00:00 submit: warn\n    likely to fail\\x1b[2J\n" in text
    assert "modify: pass, not shown to the user: would be reject\n    hm\n" in text

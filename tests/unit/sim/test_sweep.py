"""Studies: their cases, what is kept of them, how a sweep goes on, and what a wrong study says."""

import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.unit.sim.test_time_travel import table

from gpuwaste.cli.sweeping import CaseProgress
from gpuwaste.core.errors import UsageError
from gpuwaste.sim.sweep_results import PARQUET, SweepFolder, collect, run_case, run_cases, summary
from gpuwaste.sim.sweep_study import SweepStudy, read_study
from gpuwaste.sim.swf_writer import swf_lines

STUDY = """
title = "Backfill"
seeds = [3, 5]
timeout_s = 9
[fixed]
schedulers = ["fcfs", "easy"]
first = 30
[grid]
generate = ["lublin:jobs=40", "lublin:jobs=40,load=3"]
walltime = ["user", "truth"]
"""


def study(tmp_path: Path, text: str = STUDY) -> SweepStudy:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return read_study(path)


def folder(tmp_path: Path) -> SweepFolder:
    found = SweepFolder(tmp_path / "results")
    found.make()
    return found


def kept(tmp_path: Path) -> list[dict[str, Any]]:
    relation = duckdb.read_parquet(str(tmp_path / "results" / PARQUET)).order("generate, walltime, seed, scheduler")
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def test_a_study_is_every_combination_with_every_seed(tmp_path: Path) -> None:
    """Two values by two values by two seeds are eight cases of distinct ids, the same each time it is read."""
    first, again = study(tmp_path), study(tmp_path)
    assert (first.title, first.timeout_s, first.varied) == ("Backfill", 9, ("generate", "walltime"))
    assert len({case.id for case in first.cases}) == len(first.cases) == 8
    assert [case.id for case in first.cases] == [case.id for case in again.cases]
    assert {case.seed for case in first.cases} == {3, 5}
    assert all(case.values["first"] == 30 and case.values["steps"] == [] for case in first.cases)


def test_results_are_collected_as_parquet(tmp_path: Path) -> None:
    """Each case has a row for each scheduler with its parameters, and EASY makes no job wait longer on the mean."""
    found, into = study(tmp_path), folder(tmp_path)
    assert run_cases(found.cases, into) == 0
    assert collect(found, into) == 16
    rows = kept(tmp_path)
    assert len(rows) == 16
    assert {row["scheduler"] for row in rows} == {"easy", "fcfs"}
    assert {row["jobs"] for row in rows} == {30}
    assert all(easy["mean_wait_s"] <= fcfs["mean_wait_s"] for easy, fcfs in zip(rows[::2], rows[1::2], strict=True))
    headers, means = summary(found, into)
    assert headers[:4] == ["generate", "walltime", "scheduler", "n"]
    assert len(means) == 8
    assert {row[3] for row in means} == {2}
    first = [row["mean_wait_s"] for row in rows if row["scheduler"] == "easy"][:2]
    assert means[0][4] == pytest.approx(sum(first) / 2)


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Cases with rows are not run again; a damaged file and a failed case are; a longer study keeps what is there."""
    found, into = study(tmp_path), folder(tmp_path)
    run_cases(found.cases[:5], into)
    assert into.left(found.cases) == list(found.cases[5:])
    into.file_of(found.cases[0]).write_text('{"rows": [')
    into.keep(found.cases[1], error="its process ended")
    assert into.left(found.cases) == [*found.cases[:2], *found.cases[5:]]
    longer = study(tmp_path, STUDY.replace("[3, 5]", "[3, 5, 7]"))
    assert len(into.left(longer.cases)) == 12 - 3
    assert collect(found, into) == 6, "three cases of two schedulers"


def test_one_bad_case_does_not_end_the_rest(tmp_path: Path) -> None:
    """A case that cannot be drawn keeps its error; the others have their rows."""
    found = study(tmp_path, STUDY.replace("jobs=40,load=3", "jobs=-1"))
    into = folder(tmp_path)
    assert run_cases(found.cases, into) == 4
    assert collect(found, into) == 8
    (bad, *_) = into.left(found.cases)
    assert "expected a whole number from 1" in (into.result_of(bad) or {})["error"]


def test_a_log_beside_the_study_is_stepped(tmp_path: Path) -> None:
    """A study names a log by its place from the study, and steps that are drawn by the case's seed."""
    (tmp_path / "log.swf").write_text("".join(swf_lines(table(), 64, {})))
    text = 'seeds = 2\n[fixed]\nswf = "log.swf"\n[grid]\nsteps = [[], ["thin=0.5"]]\n'
    found, into = study(tmp_path, text), folder(tmp_path)
    assert [run_case(case, into) for case in found.cases] == [""] * 4
    collect(found, into)
    relation = duckdb.read_parquet(str(tmp_path / "results" / PARQUET))
    jobs = dict(relation.project("steps || seed, jobs").fetchall())
    assert jobs["1"] == jobs["2"] == 40
    assert jobs["thin=0.51"] != jobs["thin=0.52"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = ", "is not valid TOML"),
        ("\xff\x00", "is not valid TOML"),
        ("other = 1", "'other': expected title, experiment"),
        ('experiment = "none"', "expected one of"),
        ("seeds = 0", "seeds=0"),
        ("seeds = [1, -2]", "seeds="),
        ("seeds = true", "seeds=True"),
        ("timeout_s = -1", "timeout_s=-1"),
        ("fixed = 3", "fixed: expected a table"),
        ("[fixed]\nfoo = 1", "fixed.foo: expected generate"),
        ('[fixed]\nfirst = "1"', "first='1': expected a value like 0"),
        ("[fixed]\nschedulers = [1]", "expected a value like"),
        ("[grid]\nfirst = 3", "grid.first: expected a list"),
        ("[grid]\nfirst = []", "grid.first: expected a list"),
        ("[fixed]\nfirst = 1\n[grid]\nfirst = [1]", "the key not in"),
        ("seeds = 100000\n[grid]\nfirst = [1, 2]", "200,000 cases: expected at most"),
        ("a = " + "[" * 5000, "is not valid TOML"),
    ],
)
def test_a_wrong_study_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    """What is wrong is named with the file."""
    path = tmp_path / "study.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"study\.toml") as raised:
        read_study(path)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value).rstrip()


def test_a_study_that_is_not_there_or_huge(tmp_path: Path) -> None:
    """A missing file, a directory and a file of megabytes are refused."""
    (tmp_path / "huge.toml").write_bytes(b"#" * 2_000_000)
    for name in ("none.toml", "", "huge.toml"):
        with pytest.raises(UsageError):
            read_study(tmp_path / name)


def test_progress_has_its_rate_and_the_time_left() -> None:
    """Cases of an earlier run count as done and not for the rate; failed ones are counted."""
    now, stream = [0.0], io.StringIO()
    progress = CaseProgress(100, done=50, stream=stream, clock=lambda: now[0])
    for second in range(1, 11):
        now[0] = float(second * 4)
        progress.ended(failed=second == 3)
    assert progress.line() == "gpuwaste: 60 of 100 cases, 0.25/s, 2 min 40 s left, 1 failed"
    assert (progress.done, progress.failed) == (60, 1)
    assert stream.getvalue().count("\n") == 1, "every 30 s where nobody watches"


def test_a_kept_case_is_json(tmp_path: Path) -> None:
    """The file of a case names what it was."""
    found, into = study(tmp_path), folder(tmp_path)
    run_case(found.cases[0], into)
    text = json.loads(into.file_of(found.cases[0]).read_text())
    assert (text["experiment"], text["seed"], len(text["rows"])) == ("simulate", 3, 2)


@pytest.mark.parametrize(("name", "cases"), [("wrappers_static", 90), ("wrappers_dynamic", 576)])
def test_our_own_studies_can_be_read(name: str, cases: int) -> None:
    """The studies of the page on wrappers have the cases that the page counts."""
    assert len(read_study(Path(__file__).parents[3] / "bench" / "studies" / f"{name}.toml").cases) == cases

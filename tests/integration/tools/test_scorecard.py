"""The scorecard: the same logs give the same page, and a miss is written as one."""

from pathlib import Path

import pytest
from tests.integration.cli.test_evaluate import swf
from tools.scorecard.goals import GOALS, goal_lines
from tools.scorecard.logs import LOGS, Log
from tools.scorecard.page import page
from tools.scorecard.part import Part, make_part
from tools.scorecard.uio import as_sacct

pytestmark = pytest.mark.long


def test_two_runs_give_the_same_page(tmp_path: Path) -> None:
    """No clock, no path and no chance is in it."""
    swf(tmp_path / "small.swf")
    swf(tmp_path / "bare.swf", users=False)
    logs = [Log("small", "small.swf", "a note", 2), Log("bare", "bare.swf")]
    pages = [page([make_part(log, tmp_path) for log in logs], "", 2) for _ in range(2)]
    assert pages[0] == pages[1]
    assert "Over 2 seeds: failure average_precision" in pages[0]
    assert "Exit code 3: `bare: has neither users" in pages[0]
    assert str(tmp_path) not in pages[0]


def test_a_miss_is_called_one_and_has_its_reason() -> None:
    """Below a goal of at least, above one of at most, outside one of plus or minus."""
    wanted = {goal.metric: goal for goal in GOALS if goal.log == "KTH-SP2"}
    numbers = {
        "failure.model.average_precision": [0.70, 0.71],
        "failure.model.f1": [0.66],
        "failure.model.ece": [0.03],
        "walltime.model.under_rate_0.95": [0.065],
        "walltime.model.under_rate_0.9": [0.105],
    }
    assert set(numbers) < set(wanted)
    lines = goal_lines([Part(Log("KTH-SP2", ""), "", numbers)])
    verdicts = {line.split("|")[2].strip(): line.split("|")[5].strip() for line in lines if line.startswith("| KTH")}
    assert verdicts["failure: AP"] == "MISSED (1)"
    assert verdicts["failure: F1"] == "reached"
    assert verdicts["failure: ECE"] == "MISSED (2)"
    assert verdicts["walltime under-estimated, at 5%"] == "MISSED (3)"
    assert verdicts["walltime under-estimated, at 10%"] == "reached"
    assert any(line.startswith("1. ") for line in lines)
    assert any("0.705 (0.700 to 0.710)" in line for line in lines)


def test_little_is_reserved_only_where_it_was_mostly_enough() -> None:
    """Reserved over used below its goal is a miss where more than 5 % of the jobs would have been cut short."""
    for rate, verdict in ((0.0504, "reached"), (0.053, "MISSED (1)")):
        numbers = {"walltime.model.reserved_over_used_0.95": [1.8], "walltime.model.under_rate_0.95": [rate]}
        lines = goal_lines([Part(Log("CEA-Curie", ""), "", numbers)])
        row = next(line for line in lines if line.startswith("| CEA-Curie |"))
        assert f"1.80, {rate:.1%} under-estimated | {verdict} |" in row


def test_cells_of_the_sacct_sample_become_columns(tmp_path: Path) -> None:
    """NAME=VALUE cells in any order, values with commas and bars included."""
    source, target = tmp_path / "in.csv", tmp_path / "out.txt"
    source.write_text('JobID=1,User=x,"AllocTRES=cpu=1,mem=2G",JobName=a|b\n')
    as_sacct(source, target)
    header, row = (line.split("|") for line in target.read_text().splitlines())
    cells = dict(zip(header, row, strict=True))
    assert (cells["JobID"], cells["AllocTRES"], cells["JobName"], cells["MaxRSS"]) == ("1", "cpu=1,mem=2G", "a b", "")


def test_every_goal_is_of_a_log_that_is_read() -> None:
    """A goal of a log that does not exist would never be measured."""
    assert {goal.log for goal in GOALS} <= {log.name for log in LOGS}

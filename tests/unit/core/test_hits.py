"""What counts as a hit, of each target: the definition that every score uses."""

import re
from pathlib import Path

import pytest

import gpuwaste.advice
from gpuwaste.advice.verdicts.hits import HIT_SHARE, RunEnd, all_ends, came_true


@pytest.mark.parametrize(
    ("target", "end", "true"),
    [
        ("failure", RunEnd("FAILED"), True),
        ("failure", RunEnd("OUT_OF_MEMORY"), True),
        ("failure", RunEnd("COMPLETED"), False),
        ("failure", RunEnd("TIMEOUT"), None),
        ("failure", RunEnd("CANCELLED"), None),
        ("failure", RunEnd("NODE_FAIL"), None),
        ("failure_or_cancel", RunEnd("CANCELLED"), True),
        ("failure_or_cancel", RunEnd("CANCELLED", ran=False), None),
        ("timeout", RunEnd("TIMEOUT", at_limit=True), True),
        ("timeout", RunEnd("TIMEOUT", at_limit=False), True),
        ("timeout", RunEnd("TIMEOUT"), None),
        ("timeout", RunEnd("FAILED", at_limit=False), False),
        ("timeout", RunEnd("FAILED", at_limit=True), True),
        ("timeout", RunEnd("CANCELLED", at_limit=True), True),
        ("timeout", RunEnd("COMPLETED", at_limit=True), False),
        ("timeout", RunEnd("PREEMPTED", at_limit=False), None),
        ("timeout", RunEnd("", at_limit=False), False),
        ("gpu_underused", RunEnd("COMPLETED", under=True), True),
        ("gpu_underused", RunEnd("FAILED", under=True), None),
        ("gpus_needed", RunEnd("FAILED", under=False, fewer=True), True),
        ("gpus", RunEnd("COMPLETED", under=False, fewer=True), True),
        ("gpus", RunEnd("COMPLETED", under=True, fewer=False), True),
        ("gpus", RunEnd("COMPLETED", under=False, fewer=False), False),
        ("gpus", RunEnd("COMPLETED"), None),
        ("walltime", RunEnd("COMPLETED"), None),
        ("no such target", RunEnd("FAILED"), None),
    ],
)
def test_a_target_comes_true_or_not_or_nothing_is_known(target: str, end: RunEnd, true: bool | None) -> None:
    """By state, and by what the ledger says of the GPUs; what says nothing of a target is neither."""
    assert came_true(target, end) is true


def test_the_table_is_the_definition() -> None:
    """Every row of the table that the store judges by says what came_true says, and no end is there twice."""
    rows = list(all_ends())
    assert all(came_true(target, end) is said for target, end, said in rows)
    assert len({(target, end) for target, end, _ in rows}) == len(rows) > 100


def test_the_share_of_a_hit_stands_here_alone() -> None:
    """The store's queries get the share of an array's runs that makes a hit as a parameter."""
    folder = Path(next(iter(gpuwaste.advice.__path__))) / "queries"
    texts = [path.read_text() for path in folder.glob("verdicts_*.sql")]
    assert sum(text.count("$hit_share") for text in texts) == 1
    assert not [text for text in texts if re.search(r"[<>=]\s*0\.5", text)]
    assert HIT_SHARE == 0.5

"""Verdicts: their ids, their tokens, and what is refused of one that comes from outside."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.advisor.verdicts import NOON_US, verdict

from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.verdict import is_token, new_id, verdict_from_json
from gpuwaste.slurm.formats.printed_run import token_of


def test_a_verdict_comes_back_from_json() -> None:
    """Every field; what a newer advisor adds is passed over."""
    whole = verdict(7, sampled=True, het_offset=1, run_job_id=9, time_limit_s=60, override="why")
    data = json.loads(json.dumps(whole.to_json()))
    assert verdict_from_json({**data, "newer": [1]}) == whole


@given(st.lists(st.integers(NOON_US, NOON_US + 10**15), min_size=2, max_size=20))
def test_ids_are_tokens_that_rise_with_time(instants: list[int]) -> None:
    """An id of a later microsecond is greater, as the store's minima and maxima need it."""
    ids = [new_id(at) for at in sorted(set(instants))]
    assert all(map(is_token, ids))
    assert ids == sorted(ids)


def test_ids_of_one_microsecond_differ() -> None:
    """Two advisors may answer in the same instant."""
    assert len({new_id(NOON_US) for _ in range(200)}) == 200


def test_a_token_is_found_beside_other_text() -> None:
    """The last one counts; what only looks like one does not."""
    first, last = new_id(NOON_US), new_id(NOON_US + 1)
    assert token_of(f"moved by ops;gw={first};gw={last}") == last
    assert token_of(f"gw={first}") == first
    assert token_of(f";gw={first}\n") == token_of(f";gw={first}\n;x") == token_of(f"\n;gw={first} ") == ""
    assert token_of(f"xgw={first}") == token_of(f";gw={first[:-1]}") == token_of("") == ""


@pytest.mark.parametrize(
    "change",
    [
        {"action": "explode"},
        {"would_be": None},
        {"mode": "loud"},
        {"op": "cancel"},
        {"id": "ABC"},
        {"id": 7},
        {"at_utc_us": "now"},
        {"at_utc_us": -1},
        {"at_utc_us": 2**70},
        {"gpus": 1.5},
        {"gpus": True},
        {"sampled": "yes"},
        {"user": ["alice"]},
        {"name": "x" * 5000},
        {"lines": "text"},
        {"lines": [7]},
        {"lines": ["x"] * 100},
        {"p": {"failure": "high"}},
        {"p": {"failure": float("inf")}},
        {"p": [0.5]},
        {"triggers": {str(n): 0.5 for n in range(100)}},
        {"quantiles": {"walltime": 3}},
        {"run_job_id": "7"},
    ],
)
def test_a_verdict_with_a_wrong_part_is_one_error(change: dict[str, Any]) -> None:
    """Each wrong type, size or word is one line of ParseError, whatever it holds."""
    with pytest.raises(ParseError) as caught:
        verdict_from_json({**verdict(1).to_json(), **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [None, [], "x", 7, {}, {"action": "warn"}])
def test_what_is_no_verdict_is_one_error(data: object) -> None:
    """Any JSON that is no object with the parts of a verdict."""
    with pytest.raises(ParseError, match="verdict"):
        verdict_from_json(data)

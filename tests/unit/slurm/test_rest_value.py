"""Numbers, texts, states and lists of slurmrestd's JSON, in the shapes of all its versions."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ParseError, SlurmError
from gpuwaste.slurm.accounting import rest_value as value

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("found", "number"),
    [
        (5, 5), (0, 0), (5.0, 5), (2.9, 2), ("7", 7), (None, None), (-2, None), ("UNLIMITED", None), ("", None),
        ({"set": True, "infinite": False, "number": 5}, 5), ({"set": False, "infinite": False, "number": 0}, None),
        ({"set": True, "infinite": True, "number": 0}, None), ({"set": True, "infinite": False}, None), ({}, None),
        (4294967294, None), (4294967295, None), (18446744073709551614, None), (18446744073709551615, None),
        (math.nan, None), (math.inf, None), (4294967293, 4294967293),
    ],
)  # fmt: skip
def test_a_number_of_any_shape(found: Any, number: int | None) -> None:
    """NO_VAL, INFINITE, unset, negative and what is not finite are "not known", never a number."""
    assert value.number({"x": found}, "x") == number


@pytest.mark.parametrize("found", ["many", True, [], 1 << 70, 1e300, {"set": True, "number": "x"}])
def test_what_is_no_number_is_said(found: Any) -> None:
    """A word, a list or an amount beyond any cluster is an error that names the field."""
    with pytest.raises(ParseError, match=r"^time\.limit: "):
        value.number({"time": {"limit": found}}, "time", "limit")


def test_a_path_through_something_else_is_said() -> None:
    """A missing key is "not known"; a text where an object should be is an error with the place."""
    assert value.at({"time": None}, "time", "limit") is None
    with pytest.raises(ParseError, match=r"^time: expected an object, found 'now'"):
        value.at({"time": "now"}, "time", "limit")


@pytest.mark.parametrize(
    ("found", "state"),
    [
        ("COMPLETED", "COMPLETED"), (["COMPLETED"], "COMPLETED"), (["RUNNING", "COMPLETING"], "RUNNING"),
        (["PENDING", "REQUEUED"], "REQUEUED"), (["RESIZING", "RUNNING"], "RESIZING"), (["NEW", "FAILED"], "FAILED"),
        ("CANCELLED by 0", "CANCELLED"), ([], ""), (None, ""), (["NEW_ONE"], "NEW_ONE"),
    ],
)  # fmt: skip
def test_a_state_with_its_flags(found: Any, state: str) -> None:
    """One word, as accounting's own row has it."""
    assert value.state({"s": found}, "s") == state


@pytest.mark.parametrize(
    ("found", "pair"),
    [
        ({"status": "SUCCESS", "return_code": 0}, (None, 0)),
        ({"status": "SIGNALED", "return_code": None, "signal": {"signal_id": 9, "name": "Killed"}}, (0, 9)),
        ({"status": ["ERROR"], "return_code": {"set": True, "infinite": False, "number": 3},
          "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""}}, (3, 0)),
        ({"status": ["SUCCESS"], "return_code": {"set": True, "infinite": False, "number": 0}}, (0, 0)),
        (None, (None, None)),
    ],
)  # fmt: skip
def test_exit_codes_of_both_shapes(found: Any, pair: tuple[int | None, int | None]) -> None:
    """v0.0.38's 0 is not believed: it writes it for every exit code."""
    assert value.exit_of({"e": found}, "e") == pair


def test_tres_is_printed_as_sacct_does() -> None:
    """Sorted as whole items, memory in M, what has no count left out."""
    items = [
        {"type": "cpu", "name": None, "id": 1, "count": 4},
        {"type": "mem", "name": "", "id": 2, "count": 500},
        {"type": "energy", "name": None, "id": 3, "count": None},
        {"type": "gres", "name": "gpu", "id": 1001, "count": 2},
        {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 2},
    ]
    assert value.tres_text({"t": items}, "t") == "cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=500M"


@given(ANY_JSON)
def test_any_value_is_read_or_refused(found: Any) -> None:
    """Whatever stands in a field, the readers answer or raise ParseError, and texts can be stored as UTF-8."""
    for read in (value.number, value.text, value.state, value.exit_of, value.tres_text):
        try:
            answer = read({"x": found}, "x")
        except ParseError as error:
            str(error).encode()
        else:
            str(answer).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "expected JSON with jobs, found nothing"),
        (b" \n", "expected JSON with jobs, found nothing"),
        (b"<html><body>502 Bad Gateway</body></html>", "expected JSON, found HTML.*is this slurmrestd"),
        (b'{"jobs": [{"job_id": 1', "the JSON is cut off"),
        (b'{"jobs": [{"name": "half', "the JSON is cut off|invalid JSON"),
        (b"[" * 100_000, "JSON"),
        (b"9" * 5000, "JSON"),
        (b"[1, 2]", "expected an object with jobs"),
        (b'{"meta": {}}', "no list of jobs in it; it has meta"),
        (b"\xff\xfe\x00\x01", "invalid JSON|cut off"),
    ],
)
def test_what_is_no_page_is_said_in_one_line(data: bytes, reason: str) -> None:
    """Empty, HTML, cut off, nested too deep, binary: one line each."""
    with pytest.raises(ParseError, match=reason) as caught:
        value.jobs(data)
    assert "\n" not in str(caught.value)


def test_an_error_inside_an_answer_counts() -> None:
    """An answer of 22.05 is 200 with an error in it; to have found nothing is none."""
    refused = {"errors": [{"error_number": 1007, "error": "Protocol authentication error", "source": "x"}], "jobs": []}
    with pytest.raises(SlurmError, match="Protocol authentication error: x"):
        value.jobs(json.dumps(refused).encode())
    empty = {"errors": [{"error_number": 9003, "error": "Nothing found with query"}], "jobs": []}
    assert value.jobs(json.dumps(empty).encode()) == []

"""Requests as JSON: what goes out comes back, and what is wrong is named."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.advice.predict.site_of_predict import TRAIN

from gpuwaste.advice.predict.request_json import MAX_REQUESTS, requests_from_json
from gpuwaste.core.errors import UsageError
from gpuwaste.slurm.submit.job_request import JobRequest

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*JobRequest.__dataclass_fields__, "requests", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


def test_a_request_comes_back_as_it_was() -> None:
    """Alone, in a list, under "requests", through JSON's text."""
    data = json.loads(json.dumps(asdict(TRAIN)))
    for form in (data, [data], {"requests": [data]}):
        assert requests_from_json(form) == [TRAIN]


def test_a_whole_number_may_be_written_as_a_float() -> None:
    """1e9 is a whole number to a user and a float to JSON; null is not said."""
    (found,) = requests_from_json(json.loads('{"mem_b": 1e9, "cpus": 4.0, "gpus": null, "name": null}'))
    assert (found.mem_b, found.cpus, found.gpus, found.name) == (10**9, 4, 0, "")


def test_who_and_when_are_filled_in_where_they_are_left_out() -> None:
    """The caller and the clock stand in; what is said stays."""
    assert requests_from_json({}, user="eve", submit=7) == [JobRequest("eve", 7)]
    assert requests_from_json({"user": "bob", "submit": 3}, user="eve", submit=7) == [JobRequest("bob", 3)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "found 0"),
        ([{}] * (MAX_REQUESTS + 1), "found 1001"),
        (7, "request 1: expected `object`, got `int`: the fields are user, submit"),
        ([{}, {"nmae": "x"}], "request 2: object contains unknown field `nmae`: the fields are user, submit"),
        ({"nm\n\x1b[31m": "x"}, "unknown field `nm\\n\\x1b[31m`"),
        ({"cpus": -1}, "cpus: expected `int` >= 0"),
        ({"cpus": 1.5}, "cpus: expected `int | null`, got `float`"),
        ({"cpus": True}, "cpus: expected `int | null`, got `bool`"),
        ({"cpus": "4"}, "cpus: expected `int | null`, got `str`"),
        ({"cpus": 10**400}, "cpus: expected `int` <= 4611686018427387904"),
        ({"mem_b": float("inf")}, "mem_b: expected `int | null`, got `float`"),
        ({"mem_b": float("nan")}, "mem_b: expected `int | null`, got `float`"),
        ({"name": 7}, "name: expected `str | null`, got `int`"),
        ({"name": "x" * 5000}, "name: expected `str` of length <= 4096"),
        ({"name": "\ud800"}, "name: expected a text in UTF-8"),
        ({"is_array": 1}, "is_array: expected `bool | null`, got `int`"),
        ({"whole_node": "yes"}, "whole_node: expected `bool | null`, got `str`"),
    ],
)
def test_what_is_wrong_is_named(data: object, words: str) -> None:
    """The request by its place, the field, and what it should be."""
    with pytest.raises(UsageError) as error:
        requests_from_json(data)
    assert words in str(error.value)


@given(ANY_JSON)
def test_any_json_gives_requests_or_one_line(data: object) -> None:
    """Nothing else than UsageError is raised, and what passes is sound."""
    try:
        found = requests_from_json(data)
    except UsageError as error:
        _is_one_line(error)
        return
    for request in found:
        assert isinstance(request.gpus, int)
        assert request.cpus is None or request.cpus >= 0


def _is_one_line(error: UsageError) -> None:
    assert str(error).count("\n") == 0

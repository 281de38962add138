"""Conditions: what they mean beside the library's own evaluator, and what is refused."""

from typing import Any

import pytest
from celpy import Environment
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.act.rules.expression_reader import MAX_TEXT, read_expression
from gpuwaste.act.rules.rule_facts import facts_of
from gpuwaste.core.errors import ConfigError
from gpuwaste.store.duckdb_connection import connect

FACTS = facts_of("running")
_SQL = {"bool": "BOOLEAN", "int": "BIGINT", "double": "DOUBLE", "string": "VARCHAR"}
_NAMES = ("job.gpus", "job.cpus", "ledger.idle_s", "job.run_s", "job.user", "job.array")


def ours(text: str, values: dict[str, Any]) -> bool | None:
    """Return what the condition is by DuckDB; None: not known."""
    sql = read_expression(text, FACTS).sql
    columns = ", ".join(f'${name.replace(".", "_")}::{_SQL[FACTS[name]]} AS "{name}"' for name in values)
    parameters = {name.replace(".", "_"): value for name, value in values.items()}
    cursor = connect().execute(f"SELECT {sql} FROM (SELECT {columns})", parameters)  # noqa: S608
    (row,) = cursor.fetchall()
    found: bool | None = row[0]
    return found


def theirs(text: str, values: dict[str, Any]) -> bool | None:
    """Return what it is by cel-python; None where that is an error."""
    spaces: dict[str, dict[str, Any]] = {"job": {}, "ledger": {}}
    for name, value in values.items():
        if value is not None:
            space, _, fact = name.partition(".")
            spaces[space][fact] = value
    environment = Environment()
    program = environment.program(environment.compile(text))
    try:
        return bool(program.evaluate({name: json_to_cel(value) for name, value in spaces.items()}))
    except CELEvalError:
        return None


numbers = st.sampled_from(["job.gpus", "job.cpus", "0", "1", "7", "-3"])
floats = st.sampled_from(["ledger.idle_s", "job.run_s", "0.0", "1800.5", "2.0"])
words = st.sampled_from(["job.user", "'alice'", "'bob'", "''"])
sums = st.builds("({} {} {})".format, numbers, st.sampled_from("+-*/%"), numbers)
spans = st.builds("({} {} {})".format, floats, st.sampled_from("+-*"), floats)
signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
atoms = st.one_of(
    st.builds("({} {} {})".format, numbers | sums, signs, numbers | sums),
    st.builds("({} {} {})".format, floats | spans, signs, floats | spans),
    st.builds("({} {} {})".format, words, signs, words),
    st.builds("{}.{}({})".format, words, st.sampled_from(["startsWith", "endsWith", "contains"]), words),
    st.builds("({} in [1, 2, 7])".format, numbers),
    st.builds("({} in [{}, {}])".format, numbers | sums, numbers | sums, numbers | st.just("int(ledger.idle_s)")),
    st.builds("({} in [{}, {}])".format, words, words, words),
    st.builds("({} in [{}, {}])".format, floats | spans, floats | spans, floats),
    st.sampled_from(["job.array", "true", "false", "has(ledger.idle_s)", "has(job.gpus)", "job.user.matches('^a')"]),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("(!{})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
    ),
    max_leaves=6,
)
values_drawn = st.fixed_dictionaries(
    {
        "job.gpus": st.none() | st.integers(-9, 9),
        "job.cpus": st.none() | st.integers(-9, 9),
        "ledger.idle_s": st.none() | st.floats(-1e6, 1e6),
        "job.run_s": st.none() | st.floats(-1e6, 1e6),
        "job.user": st.none() | st.sampled_from(["alice", "bob", "", "ä'b"]),
        "job.array": st.none() | st.booleans(),
    }
)


@settings(max_examples=examples(300), deadline=None)
@given(conditions, values_drawn)
def test_a_condition_means_what_the_library_says(text: str, values: dict[str, Any]) -> None:
    """DuckDB gives what cel-python's evaluator gives, and is not known exactly where that is an error."""
    assert ours(text, values) == theirs(text, values)


def test_a_list_with_a_fact_that_is_not_known_is_not_known() -> None:
    """Also where another item is equal; and where all are known, it says which it is in."""
    text = "job.gpus in [int(ledger.idle_s), 0]"
    values: dict[str, Any] = {"job.gpus": 0, "ledger.idle_s": None}
    assert ours(text, values) is theirs(text, values) is None
    assert ours(f"!({text})", values) is None
    values["ledger.idle_s"] = 5.0
    assert ours(text, values) is theirs(text, values) is True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ledger.idel_s > 1.0", "unknown fact 'ledger.idel_s': did you mean 'ledger.idle_s'?"),
        ("jbo.gpus > 1", "unknown fact 'jbo.gpus': did you mean 'job.gpus'?"),
        ("gpus > 1", "unknown name 'gpus'"),
        ("job > 1", "job is a group of facts: write job.NAME"),
        ("job.gpus", "is an integer, expected a condition"),
        ("job.gpus * 1.5 > 2.0", "an integer * a number with a point: write double(...)"),
        ("job.user > 1", "a text cannot be compared with an integer"),
        ("job.user.startWith('a')", "did you mean 'startsWith'?"),
        ("[1].all(x, x > 0)", "macros over lists are not supported"),
        ("null == null", "not supported"),
        ("{'a': 1}", "not supported"),
        ("job.gpus > 99999999999999999999", "out of range"),
        ("job.gpus > 1 &&", "not CEL at character"),
        ("", "empty"),
        ("   ", "empty"),
        ("job.gpus in []", "at least one"),
        ("true ? 1 : false", "expected the same type"),
        ("job.user == '\\ud800'", "a character that is not allowed in a text"),
        ("job.user == '\\x00'", "a character that is not allowed in a text"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, words: str) -> None:
    """A wrong name has a suggestion; nothing else than conditions over facts is taken."""
    with pytest.raises(ConfigError) as caught:
        read_expression(text, FACTS)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "1" * (MAX_TEXT + 1),
        "(" * 500 + "true" + ")" * 500,
        "!" * 1900 + "true",
        "- " * 900 + "1 > 0",
        "1" + "+1" * 900 + " > 0",
        "job.run_s" + " / 2.0" * 50 + " > 1.0",
        "true" + " ? true : false" * 1 + " ? true" * 100,
        "job." * 400 + "gpus > 0",
        "\x00",
        "'" + "a" * 100,
    ],
    ids=range(10),
)
def test_endless_expressions_are_refused(text: str) -> None:
    """However it is nested, a text is refused in one line and makes no SQL of more than 20,000 characters."""
    with pytest.raises(ConfigError) as caught:
        read_expression(text, FACTS)
    assert "\n" not in str(caught.value)


def test_many_parts_joined_are_not_nested() -> None:
    """A hundred conditions joined by && are a condition of a hundred parts."""
    text = " && ".join(["job.gpus > 1"] * 100)
    found = read_expression(text, FACTS)
    assert [part.text for part in found.parts] == ["job.gpus > 1"] * 100
    assert found.names == ("job.gpus",)


def test_division_by_zero_is_not_known() -> None:
    """Neither an integer's nor another number's quotient by 0 makes a condition hold."""
    values = dict.fromkeys(_NAMES[:2], 1) | {"ledger.idle_s": 1.0}
    assert ours("job.gpus / 0 > 0", values) is None
    assert ours("ledger.idle_s / 0.0 > 0.0", values) is None
    assert ours("job.gpus * 9223372036854775807 * 9 > 0", {**values, "job.gpus": 9}) is None

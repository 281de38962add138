"""The catalogue: each kind has a JSON Schema that its events meet, and patterns name kinds."""

import json

import pytest
from jsonschema import Draft202012Validator
from tests.unit.act.events.stream import node_silent, open_stream

from gpuwaste.core.errors import ConfigError
from gpuwaste.jobs.events.envelope import event_of
from gpuwaste.jobs.events.kind_catalogue import catalogue, kinds_of
from gpuwaste.jobs.events.kinds.job import OF_RUN


@pytest.mark.parametrize("name", catalogue())
def test_each_kind_has_a_schema_and_says_what_it_is(name: str) -> None:
    """The schema is valid by JSON Schema 2020-12, names itself, and each kind has its sentence."""
    kind = catalogue()[name]
    Draft202012Validator.check_schema(kind.schema())
    assert kind.schema()["$id"] == kind.schema_id
    assert kind.about.endswith(".")
    assert kind.name == name
    assert name.count(".") == 1


def test_events_meet_their_schemas() -> None:
    """What the stream gives is valid by the schema that its `dataschema` names; another type is not."""
    _, events, _ = open_stream(jobs=2)
    events.tell([node_silent()])
    found = [event_of(stored) for stored in events.page(0, 10).events]
    assert len(found) == 5
    for event in found:
        kind = catalogue()[event.kind]
        data = json.loads(event.data)
        Draft202012Validator(kind.schema()).validate(data)
        assert kind.problem(data) == ""
        assert kind.problem({**data, "cluster": 7}) == f"{event.kind}: cluster: expected `str`, got `int`"
    assert set(OF_RUN.values()) <= set(catalogue())


@pytest.mark.parametrize(
    ("patterns", "error"),
    [
        (["job.startd"], "x: no kind of event is called 'job.startd': did you mean 'job.started'?"),
        (["jobs.*"], r"x: no kind of event is called 'jobs\.\*': did you mean 'job\.\*'\?"),
        ([""], "x: '': expected a kind"),
        (["(a+)+$"], r"x: .*: expected a kind"),
        (["x" * 10_000], "x: 'xxx.*: expected a kind"),
    ],
)
def test_a_pattern_that_names_nothing_is_one_clear_line(patterns: list[str], error: str) -> None:
    """A typo gets the nearest kind or family."""
    with pytest.raises(ConfigError, match=error) as raised:
        kinds_of(patterns, "x")
    assert len(str(raised.value)) < 500


def test_patterns_name_kinds_families_and_all() -> None:
    """Without a pattern it is all."""
    assert kinds_of(["job.started"], "x") == {"job.started"}
    assert kinds_of(["waste.*", "job.ended"], "x") > {"waste.opened", "job.ended"}
    assert kinds_of([], "x") == kinds_of(["*"], "x") == set(catalogue())

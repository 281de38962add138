"""The second forms of queries, for a lake: each is of a query that is there, and takes the same parameters."""

import re
from pathlib import Path

import pytest

import gpuwaste
from gpuwaste.store.database import query_text

FORMS = sorted(
    file.name.removesuffix(".lake.sql")
    for root in set(gpuwaste.__path__)
    for file in Path(root).rglob("queries/*.lake.sql")
)
_PARAMETER = re.compile(r"\$([a-z_]+)")


@pytest.mark.parametrize("name", FORMS)
def test_a_form_takes_the_parameters_of_its_query(name: str) -> None:
    """A caller need not know which store it has: the names of the parameters are the same in both forms."""
    assert set(_PARAMETER.findall(query_text(name, ".lake.sql"))) == set(_PARAMETER.findall(query_text(name)))


def test_there_are_forms() -> None:
    """The folders are the right ones, and each query is found by its name alone: no two files have one."""
    assert {"hours_upsert", "rules_until"} < set(FORMS)
    files = {file for root in set(gpuwaste.__path__) for file in Path(root).rglob("queries/*.sql")}
    assert len(files) == len({file.name for file in files}) > 300

"""The second forms of queries, for a lake: each is of a query that is there, and takes the same parameters."""

import re
from importlib import resources

import pytest

from gpuwaste.store.database import query_text

FORMS = sorted(
    (package, file.name.removesuffix(".lake.sql"))
    for package in ("store.hub", "waste", "analytics", "rules", "documents", "energy")
    for file in resources.files(f"gpuwaste.{package}").joinpath("queries").iterdir()
    if file.name.endswith(".lake.sql")
)
_PARAMETER = re.compile(r"\$([a-z_]+)")


@pytest.mark.parametrize(("package", "name"), FORMS)
def test_a_form_takes_the_parameters_of_its_query(package: str, name: str) -> None:
    """A caller need not know which store it has: the names of the parameters are the same in both forms."""
    full = name if package == "store.hub" else f"{package}.{name}"
    assert set(_PARAMETER.findall(query_text("hub", full, ".lake.sql"))) == set(
        _PARAMETER.findall(query_text("hub", full))
    )


def test_there_are_forms() -> None:
    """The folders are the right ones."""
    assert ("store.hub", "hours_upsert") in FORMS
    assert ("waste", "rules_until") in FORMS

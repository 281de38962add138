"""The declared types of documents: every number with a unit says which, and a reader ignores what it does not know."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.json import schema_components
from tests.unit.show.documents import one_job, read, report, top

from gpuwaste.act.notify import notice_types
from gpuwaste.advice.policy import policies_types as policies
from gpuwaste.advice.predict import prediction_types as prediction
from gpuwaste.advice.renewal import card_types, model_types
from gpuwaste.advice.verdicts import verdict_score, verdict_types
from gpuwaste.core.fields import Document
from gpuwaste.jobs import map_types
from gpuwaste.jobs.importers import history_status
from gpuwaste.ledger.now import now_types
from gpuwaste.ledger.reports import job_types, report_types
from gpuwaste.net import health_types

_TIMES = re.compile(r"(.*_(s|b|j|w|utc|pct))|start|end|since|generated|submit|at|t0|t1|window")
ROOMS = (
    *(
        card_types,
        health_types,
        history_status,
        job_types,
        map_types,
        model_types,
        notice_types,
        now_types,
        policies,
    ),
    *(prediction, report_types, verdict_score, verdict_types),
)
KINDS = {
    kind
    for room in ROOMS
    for kind in vars(room).values()
    if isinstance(kind, type) and issubclass(kind, Document) and kind is not Document
}


def numbers() -> Iterator[tuple[str, str]]:
    """Yield type, field and meaning of each field that holds a number with a unit."""
    for title, shape in schema_components(KINDS)[1].items():
        for name, part in shape.get("properties", {}).items():
            kinds = {one.get("type") for one in part.get("anyOf", [part])}
            if "number" in kinds or ("integer" in kinds and _TIMES.fullmatch(name)):
                yield f"{title}.{name}", part.get("description", "")


def test_every_number_says_its_unit() -> None:
    """A ratio, a duration, a time or an amount has a description, from which OpenAPI and the page of the wire are."""
    found = dict(numbers())
    assert len(found) > 100
    assert [field for field, meaning in found.items() if not meaning] == []


@pytest.mark.parametrize("make", [report, one_job, top])
def test_a_reader_keeps_what_it_knows_and_ignores_the_rest(make: Any) -> None:
    """What the hub answers is read and written again without a change; fields of a newer hub are left out."""
    document = make()
    assert read(document).to_json() == document
    newer = {"new": 1, **document, "totals": {**document["totals"], "new_s": 1.5}} if "totals" in document else document
    assert read(newer).to_json() == document

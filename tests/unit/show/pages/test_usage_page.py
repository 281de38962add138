"""The headline of a usage page: what was idle without a known reason, never an accusation."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.show import documents
from tests.unit.show.pages.test_view_page import Reading

from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.reports.job_page import job_sentence
from gpuwaste.ledger.reports.usage_page import UsageQuery, usage_page
from gpuwaste.show.environment import Frame

ASKED = UsageQuery("/me", 0, 86400)


def report(scope: str, exempt_s: float = 0.0) -> Any:
    """Return a report of nine GPU-hours, three of them wasted, of which some are exempt."""
    found: Any = documents.read(documents.report())
    reasons = {"memory_resident": exempt_s} if exempt_s else {}
    totals = replace(
        found.totals, gpu_s=9.0 * HOUR_S, wasted_s=3.0 * HOUR_S, exempt_s=exempt_s, exempt_by_reason_s=reasons
    )
    return replace(found, scope=scope, totals=totals, worst_name=None)


def headline(document: Any, user: str = "alice") -> tuple[str, str]:
    """Return the first sentence of the page, and its paragraphs."""
    page = Reading(usage_page(document, None, ASKED, Frame(user=user)))
    plain = ["".join(text).replace("\N{NO-BREAK SPACE}", " ") for text in (page.said("h1"), page.said("p"))]
    return " ".join(plain[0].split()), " ".join(plain[1].split())


@pytest.mark.parametrize(
    ("scope", "user", "words"),
    [
        ("user", "alice", "3.0 of your 9.0 GPU-hours in this time were idle without a known reason (33 %)."),
        ("user", "oper", "3.0 of 9.0 GPU-hours of user alice in this time were idle without a known reason (33 %)."),
    ],
)
def test_the_headline_says_what_was_idle_and_blames_nobody(scope: str, user: str, words: str) -> None:
    """The reader's own hours are "your" hours; others are named; nobody "wasted" anything."""
    assert headline(report(scope), user)[0] == words


def test_exempt_time_is_beside_the_headline_and_not_in_it() -> None:
    """Of three wasted GPU-hours one kept a model in memory: two are told, and one more below, with its reason."""
    said, below = headline(report("user", exempt_s=1.0 * HOUR_S))
    assert said.startswith("2.0 of your 9.0 GPU-hours")
    assert said.endswith("(22 %).")
    assert "1.0 GPU-hours more are idle and exempt (memory resident)." in below


def test_the_sentence_of_a_job_leaves_exempt_time_out() -> None:
    """Three of four GPU-hours idle, one of them exempt: two are told."""
    found: Any = documents.read(documents.one_job())
    run = found.runs[0]
    assert job_sentence(found).startswith("Job 7 resnet50: 3.0 of its 4.0 GPU-hours were idle (75 %)")
    totals = replace(run.totals, exempt_s=1.0 * HOUR_S)
    exempt = replace(found, runs=[replace(run, totals=totals)])
    assert job_sentence(exempt).startswith("Job 7 resnet50: 2.0 of its 4.0 GPU-hours were idle (50 %)")

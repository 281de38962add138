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
        (
            "user",
            "alice",
            "3.00 of your 9.00 GPU-hours from 15 to 22 June 2025 were idle without a known reason (33 %).",
        ),
        (
            "user",
            "oper",
            "3.00 of 9.00 GPU-hours of user alice from 15 to 22 June 2025 were idle without a known reason (33 %).",
        ),
    ],
)
def test_the_headline_says_what_was_idle_and_blames_nobody(scope: str, user: str, words: str) -> None:
    """The reader's own hours are "your" hours; others are named; nobody "wasted" anything."""
    assert headline(report(scope), user)[0] == words


def test_exempt_time_is_beside_the_headline_and_not_in_it() -> None:
    """Of three wasted GPU-hours one kept a model in memory: two are told, and one more below, with its reason."""
    said, below = headline(report("user", exempt_s=1.0 * HOUR_S))
    assert said.startswith("2.00 of your 9.00 GPU-hours")
    assert said.endswith("(22 %).")
    assert "A further 1.00 GPU-hours were idle and are exempt (GPU memory held, GPU idle)." in below


def test_the_sentence_of_a_job_leaves_exempt_time_out() -> None:
    """Three of four GPU-hours idle, one of them exempt: two are told."""
    found: Any = documents.read(documents.one_job())
    run = found.runs[0]
    assert job_sentence(found).startswith("Job 7 resnet50: 3.00 of its 4.00 GPU-hours were idle (75 %)")
    totals = replace(run.totals, exempt_s=1.0 * HOUR_S)
    exempt = replace(found, runs=[replace(run, totals=totals)])
    assert job_sentence(exempt).startswith("Job 7 resnet50: 2.00 of its 4.00 GPU-hours were idle (50 %)")


def test_the_unit_and_the_dates_of_the_headline_fit_their_size() -> None:
    """Less than one GPU-hour is in GPU-minutes; the last days are "since", without the year where it is one year."""
    found: Any = documents.read(documents.report())
    totals = replace(found.totals, gpu_s=594.0, wasted_s=258.0, exempt_s=0.0)
    short = replace(found, totals=totals, worst_name=replace(found.worst_name, name="train", jobs=1, wasted_s=160.0))
    page = Reading(usage_page(short, None, UsageQuery("/me", ASKED.start, ASKED.end, days=7), Frame(user="alice")))
    assert page.said("h1") == "4.3 of your 9.9 GPU-minutes since 15 June were idle without a known reason (43 %)."
    assert "Job train caused 62 % of it." in page.said("p")
    assert "GPU-minutes" in page.said("th")
    assert "GPU-hours" not in page.said("th")


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (0, 86_400, "on 1 January 1970"),
        (0, 86_401, "from 1 to 2 January 1970"),
        (0, 40 * 86_400, "from 1 January to 9 February 1970"),
        (0, 400 * 86_400, "from 1 January 1970 to 4 February 1971"),
        (2**39, 2**40, "on 31 December 9999"),
    ],
)
def test_a_window_of_dates_is_short(start: int, end: int, words: str) -> None:
    """Month and year are not repeated, and the end is exclusive; a year that no calendar has is the last one."""
    found: Any = documents.read(documents.report())
    document = replace(found, job_count=0, start=start, end=end)
    page = Reading(usage_page(document, None, UsageQuery("/me", start, end), Frame(user="alice")))
    assert page.said("h1") == f"You have no jobs with GPUs {words}."

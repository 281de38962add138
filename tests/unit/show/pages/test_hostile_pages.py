"""Each text of a document, one at a time, becomes one that attacks: the page has the elements that it had before."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest
from tests.unit.show import documents, effect_documents, verdict_documents
from tests.unit.show.documents import read
from tests.unit.show.pages.parsed import Parsed
from tests.unit.show.test_hostile_documents import changed, places

from gpuwaste.act.campaigns.effect_page import effects_page
from gpuwaste.advice.renewal.models_resource import models_page
from gpuwaste.advice.verdicts.verdicts_page import verdicts_page
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.ledger.reports.job_page import helpdesk_page, job_page
from gpuwaste.ledger.reports.usage_page import UsageQuery, usage_page
from gpuwaste.net.health_types import PredictionHealth
from gpuwaste.show.environment import Frame, error_page
from gpuwaste.show.environment import page as page_of

FRAME: Final = Frame(user="alice", path="/me", accounts=("proj1",))
ASKED: Final = UsageQuery("/me", documents.END - 7 * 86400, documents.END, 7)
ATTACKS: Final = (
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "</title></textarea></style><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% for x in y %}",
    "javascript:alert(1)",
)
TURNING: Final = "a\u202egnp.\u2066exe\x1b[2J\x00\ud800"
ACCOUNT: Final = partial(documents.report, scope="account", name="physics")
PAGES: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[Any], str]]] = {
    "user": (documents.report, lambda found: usage_page(found, None, ASKED, FRAME)),
    "account": (ACCOUNT, lambda found: usage_page(found, None, ASKED, FRAME)),
    "job": (documents.one_job, lambda found: job_page(found, FRAME)),
    "helpdesk": (documents.one_job, lambda found: helpdesk_page(found, "https://hub", FRAME)),
    "array": (lambda: documents.one_job("30"), lambda found: job_page(found, FRAME)),
    "keeps": (documents.keeps, lambda found: page_of("keeps", FRAME, document=found)),
    "appeals": (documents.appeals, lambda found: page_of("appeals", FRAME, document=found, may_reply=True)),
    "verdicts": (verdict_documents.listed, lambda found: verdicts_page(found, None, 1, FRAME)),
    "effects": (effect_documents.effects, lambda found: effects_page(found, FRAME)),
}  # fmt: skip


def made(name: str, document: dict[str, Any]) -> str:
    """Return a page; "" where the document is none that a hub makes."""
    try:
        return PAGES[name][1](read(document))
    except (GpuwasteError, KeyError, ValueError, TypeError):
        return ""


def with_text(document: dict[str, Any], way: tuple[Any, ...], text: str) -> dict[str, Any]:
    """Return the document with another text in one place."""
    evil = changed(document, way)
    at: Any = evil
    for step in way[:-1]:
        at = at[step]
    at[way[-1]] = text
    return evil


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_no_text_of_a_document_becomes_an_element_or_an_attribute(name: str) -> None:
    """Wherever the attack stands, the page has the elements and the attributes of one with a harmless text there."""
    document = PAGES[name][0]()
    shown = 0
    for way in places(document):
        calm = made(name, with_text(document, way, "harmless"))
        expected = [(tag, sorted(attributes)) for tag, attributes in Parsed(calm).tags] if calm else None
        for attack in ATTACKS:
            page = made(name, with_text(document, way, attack))
            if not page or expected is None:
                continue
            found = Parsed(page)
            assert [(tag, sorted(attributes)) for tag, attributes in found.tags] == expected, way
            shown += attack in found.text
            for _, attributes in found.tags:
                assert not (attributes.get("href") or "").startswith("javascript"), way
    assert shown


@pytest.mark.parametrize("name", PAGES)
def test_no_character_turns_a_text_around_or_ends_it(name: str) -> None:
    """Direction marks, controls, NUL and half surrogates are on no page; each page can be sent as UTF-8."""
    document = PAGES[name][0]()
    pages = [made(name, with_text(document, way, TURNING)) for way in places(document)]
    for page in filter(None, pages):
        page.encode()
        assert not set(page) & set("\u202e\u2066\x1b\x00")
    assert sum(map(bool, pages)) > 5


@pytest.mark.parametrize("name", PAGES)
def test_a_name_of_ten_thousand_characters_is_cut(name: str) -> None:
    """The page grows by less than a tenth of them for each place where the text is."""
    document = PAGES[name][0]()
    usual = len(PAGES[name][1](read(document)))
    for way in places(document):
        if way[-1] in {"job_id", "jobid", "printed_id"}:  # Slurm's own, and bounded where they are asked for
            continue
        page = made(name, with_text(document, way, "x" * 10_000))
        assert len(page) < usual + 12 * 1000, way


def test_the_words_of_an_error_are_text() -> None:
    """What was asked for is repeated in an error's words: it is printed, cut, and no element."""
    page = Parsed(error_page("Not found.", ATTACKS[0] + "x" * 10_000, ("Do this.",), FRAME))
    assert ATTACKS[0] in page.text
    assert len(page.text) < 2000


@pytest.mark.parametrize("state", ["starting", "ready", "not installed"])
def test_the_page_of_the_model_is_there_in_every_state(state: Any) -> None:
    """With a model, without one, and without the libraries."""
    for model in ("", ATTACKS[0]):
        health = PredictionHealth(
            state=state, model=model, model_hash="a" * 64, created=None, event=None, note=ATTACKS[1], error=ATTACKS[2]
        )
        page = Parsed(models_page(health, None, FRAME))
        assert page.shape().count("script") == 2
        assert ATTACKS[2] in page.text


def test_a_report_page_has_every_part() -> None:
    """The week of the documents' tests: level bar, days, fix, jobs, and a square for each GPU."""
    page = Parsed(usage_page(read(documents.report()), None, ASKED, FRAME))
    classes = [attributes.get("class") for _, attributes in page.tags]
    assert {"level-bar", "day-bars", "fix", "squares", "legend"} <= set(classes)
    assert "#SBATCH --gres=gpu:a100:1" in page.text
    assert page.text.index("were idle without") < page.text.index("By day")

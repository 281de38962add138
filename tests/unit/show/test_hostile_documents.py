"""Documents of a hub that lies: each text in them, one at a time, becomes one that would act on whoever prints it."""

import csv
import io
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import UTC
from typing import Any

import pytest
from tests.unit.show import documents, predictions, verdict_documents
from tests.unit.show.documents import read
from tests.unit.show.test_notice_text import digest

from gpuwaste.act.notify.notice_runner import words
from gpuwaste.act.notify.notice_types import Digest
from gpuwaste.advice.predict.predict_text import predict_text
from gpuwaste.advice.verdicts.verdict_text import score_text, verdicts_text
from gpuwaste.cli.options import as_text, typed
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.ledger.now.now_text import now_text
from gpuwaste.ledger.reports.job_text import job_text
from gpuwaste.ledger.reports.report_text import report_text, top_text
from gpuwaste.ledger.reports.report_types import ReportDocument
from gpuwaste.show.layout import Look
from gpuwaste.show.machine_formats import to_csv, to_json, to_parsable

LOOK = Look(zone=UTC)
HOSTILE = "=1+1|\x1b[2J\x1b]0;owned\x07\r\nBcc: x\u202e\u2066\x9b31m\x00\ud800"
DOCUMENTS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[Any, Look], str]]] = {
    "report": (documents.report, report_text),
    "job": (documents.one_job, job_text),
    "top": (documents.top, top_text),
    "now": (documents.now, now_text),
    "predict": (lambda: predictions.document(predictions.prediction(), notes=("a note",)), predict_text),
    "verdicts": (verdict_documents.listed, verdicts_text),
    "score": (verdict_documents.score, score_text),
    "digest": (digest, lambda document, look: words(document, look, "")[1]),
}


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each text of a document."""
    if isinstance(value, str):
        yield way
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*way, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:2]):
            yield from places(item, (*way, index))


def changed(document: dict[str, Any], way: tuple[Any, ...]) -> dict[str, Any]:
    """Return the document with one text replaced."""
    made = deepcopy(document)
    at: Any = made
    for step in way[:-1]:
        at = at[step]
    at[way[-1]] = HOSTILE
    return made


def printed_as(document: dict[str, Any], text: Callable[[Any, Look], str]) -> str:
    """Return what a command prints, or a digest."""
    if "document" not in document:
        return text(convert(document, Digest, "digest"), LOOK)
    kind = documents.KINDS.get(document["document"], ReportDocument)
    return as_text(typed(document, kind, printed=True), text)


def shown(make: Callable[..., str], *arguments: Any) -> str:
    """Return what is printed; a document that is not understood is one line of the command's, as for any defect."""
    try:
        return make(*arguments)
    except GpuwasteError as error:
        return f"gpuwaste: {error}\n"
    except (KeyError, ValueError, TypeError, IndexError):
        return ""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_text_of_a_document_acts_on_who_reads_it(name: str) -> None:
    """Neither on a terminal, nor on a program that reads lines, nor on a spreadsheet; whichever field it stands in."""
    make, text = DOCUMENTS[name]
    document = make()
    ways = list(places(document))
    assert len(ways) > 5
    printed = 0
    for way in ways:
        evil = changed(document, way)
        page = shown(printed_as, evil, text)
        printed += bool(page)
        assert [c for c in page.replace("\n", "") if not c.isprintable()] == [], way
        assert not any(line.startswith("Bcc:") for line in page.splitlines()), way
        if name == "digest":
            continue
        assert to_json(evil).isascii()
        lines = shown(lambda one: to_parsable(read(one)), evil).splitlines()
        assert {line.count("|") for line in lines} <= {lines[0].count("|") if lines else 0}, way
        cells = [cell for row in csv.reader(io.StringIO(shown(lambda one: to_csv(read(one)), evil))) for cell in row]
        assert not [cell for cell in cells if cell.startswith("=")], way
        assert all(c.isprintable() for cell in cells for c in cell), way
    assert printed > len(ways) / 2


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_a_cell_that_a_spreadsheet_would_run_begins_with_an_apostrophe(sign: str) -> None:
    """Also in full width, which some spreadsheets take for the sign itself."""
    document = documents.report()
    document["jobs"][0]["name"] = f"{sign}HYPERLINK(1)"
    assert f"'{sign if sign.isprintable() else ascii(sign)[1:-1]}HYPERLINK" in to_csv(read(document))

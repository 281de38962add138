"""The text of a look: whose jobs, then the sentences of each view, then what an agent would add."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import local_time
from gpuwaste.show.view_document import ViewDocument, first_sentence

BALANCE: Final = "balance"
ORDER: Final = (BALANCE, "waits", "queue", "limits", "states", "sizes")
"""The first views of the text; the others follow by what they found."""


@dataclass(frozen=True, slots=True)
class LookReport:
    """What a look found; `whose` and `not_read` come first, `agent` last. `assumed` is of the balance."""

    whose: str
    not_read: Sequence[str]
    documents: Sequence[ViewDocument]
    use: Sequence[str]
    agent: Sequence[str]
    assumed: Sequence[str] = ()


def in_order(documents: Sequence[ViewDocument]) -> list[ViewDocument]:
    """Return the views as the text has them; `documents` are in the order of their findings."""
    first = [document for name in ORDER for document in documents if document.view == name]
    return [*first, *(document for document in documents if document.view not in ORDER)]


def look_text(report: LookReport, look: Look) -> str:
    """Return the text, without tables: these are on the pages."""
    found = [document for document in report.documents if document.weight is not None]
    lines = list(look.title(_title(report.documents)))
    for sentence in (report.whose, *report.not_read):
        lines += look.bullet(harmless(sentence))
    start = min((document.start for document in report.documents), default=0)
    for document in found:
        since = "" if document.start == start else f", from {local_time(document.start, None)} on"
        lines += ["", look.paint(f"{document.title}{since}", "1")]
        for sentence in (*document.narrative, *map(harmless, report.assumed if document.view == BALANCE else ())):
            lines += look.bullet(sentence)
    lines += ["", look.paint("Requests and use of GPUs", "1")]
    for sentence in report.use:
        lines += look.bullet(sentence)
    if missing := [document for document in report.documents if document.weight is None]:
        lines += ["", look.paint("Not in accounting", "1")]
        for document in missing:
            lines += look.bullet(f"{document.title}: {first_sentence(document)}")
    lines += ["", look.paint("What an agent would add", "1")]
    for sentence in report.agent:
        lines += look.bullet(sentence)
    return "\n".join(lines) + "\n"


def _title(documents: Sequence[ViewDocument]) -> str:
    if not documents:
        return "A look at accounting"
    clusters = ", ".join(documents[0].clusters[:3])
    start, end = min(one.start for one in documents), max(one.end for one in documents)
    return f"{clusters}: {local_time(start, None)} to {local_time(end, None)}"

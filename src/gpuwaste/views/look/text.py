"""The text of a look: whose jobs, then the sentences of each view, then what an agent would add."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import local_time
from gpuwaste.show.view_document import ViewDocument, first_sentence

ORDER: Final = ("balance", "waits", "queue", "limits", "states", "sizes")
"""The first views of the text; the others follow by what they found."""
_NO_USE: Final = "Accounting records no use of GPUs (neither jobstats' summaries nor gres/gpuutil)."


@dataclass(frozen=True, slots=True)
class LookReport:
    """What a look found; `whose` and `not_read` come first, `agent` last."""

    whose: str
    not_read: Sequence[str]
    documents: Sequence[ViewDocument]
    agent: Sequence[str]


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
    for document in found:
        lines += ["", look.paint(f"{document.title}", "1")]
        for sentence in document.narrative:
            lines += look.bullet(sentence)
    lines += ["", look.paint("Requests and use of GPUs", "1"), *look.bullet(_use(report.documents))]
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
    one = documents[0]
    clusters = ", ".join(one.clusters[:3])
    return f"{clusters}: {local_time(one.start, None)} to {local_time(one.end, None)}"


def _use(_documents: Sequence[ViewDocument]) -> str:
    """Return the use of GPUs as accounting has it: table accounted_use, where a source fills it."""
    return _NO_USE

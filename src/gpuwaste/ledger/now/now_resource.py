"""GPUs held and idle now, silent nodes, the queue.

The figures are as old as the reports of the agents: the ages are printed. Users see the counts of all jobs, and the
idle GPUs and silent nodes of their own jobs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from gpuwaste.core.scope import Scope
from gpuwaste.ledger.now.now_text import now_text
from gpuwaste.ledger.now.now_types import NowDocument
from gpuwaste.ledger.reports.report_question import MAX_ROWS
from gpuwaste.show.page_query import choice, page_number
from gpuwaste.show.resource import FORMS, Follow, Page, PageRequest, ReadCommand, Reading, Renewing, Resource, Share

if TYPE_CHECKING:
    from gpuwaste.ledger.now.node_groups import NodeOrder
    from gpuwaste.ledger.now.now_reads import NowReads

PAGE: Final = 50  # idle jobs by default
REFRESHED_S: Final = 60.0  # it shows counts of all jobs: the interval is the same for every reader


@dataclass(frozen=True)
class NowQuestion:
    """How many idle jobs to list."""

    limit: Annotated[int, Meta(ge=0, le=MAX_ROWS, description="jobs with idle GPUs to print")] = PAGE


def _now(reading: Reading) -> "NowReads":
    from gpuwaste.ledger.now.now_reads import NowReads

    return reading.get(NowReads)


def now(reading: Reading, scope: Scope, question: NowQuestion) -> NowDocument | bytes:
    """Report what the cluster does now: GPUs held and idle, nodes that report nothing, the queue.

    Users who are not operators see the counts of all jobs, but only their own jobs and their nodes; `limit` is the
    number of idle jobs.
    """
    return _now(reading).answer(scope, question.limit)


def _document(asked: PageRequest) -> NowDocument:
    from gpuwaste.ledger.now.now_page import ROWS

    page_number(asked.query), _order(asked)  # a wrong one is rejected before anything is read
    return _now(asked.reading).document(asked.scope, MAX_ROWS if asked.form else ROWS)


def _page(asked: PageRequest, document: NowDocument) -> str:
    from gpuwaste.ledger.now.now_page import now_page

    order = _order(asked)
    drawn = _now(asked.reading).map(document, order)
    return now_page(document, page_number(asked.query), asked.frame, order, drawn)


def _order(asked: PageRequest) -> "NodeOrder":
    from gpuwaste.ledger.now.node_groups import ORDERS

    return choice(asked.query, "sort", ORDERS)


def _all(_: Reading, __: Scope, ___: str) -> None:
    return None


def _renewing(reading: Reading) -> Renewing:
    return _now(reading)


def _idle_share(document: NowDocument) -> float | None:
    return document.totals.idle / document.totals.held if document.totals.held else None


RESOURCES = (
    Resource(
        path="/v1/now",
        question=NowQuestion,
        document=NowDocument,
        read=now,
        commands=[
            ReadCommand(
                text=now_text,
                examples=(
                    ("gpuwaste now", "Who holds idle GPUs now, since when; which nodes report nothing; the queue."),
                    ("gpuwaste now --limit 1000 --csv", "The jobs with idle GPUs for a spreadsheet."),
                ),
                defaults={"limit": 20},
                share=Share("share of held GPUs that are idle", _idle_share),
            )
        ],
    ),
    Page(
        path="/now",
        document=_document,
        html=_page,
        forms=FORMS,
        follow=Follow(every_s=REFRESHED_S, jobs=_all, renewing=_renewing),
    ),
)

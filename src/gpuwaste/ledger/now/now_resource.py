"""What the cluster does now: /v1/now and the page /now."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final

from markupsafe import Markup
from msgspec import Meta

from gpuwaste.core.scope import Scope
from gpuwaste.ledger.level_charts import MOST_NODES, node_grid
from gpuwaste.ledger.now.now_types import IdleJob, NowDocument, NowTotals
from gpuwaste.ledger.reports.report_question import MAX_ROWS
from gpuwaste.show.environment import Frame, page
from gpuwaste.show.page_query import page_number
from gpuwaste.show.resource import FORMS, Follow, Page, PageRequest, Reading, Renewing, Resource

if TYPE_CHECKING:
    from gpuwaste.ledger.now.now_reads import NowReads

PAGE: Final = 50  # idle jobs where nobody says how many
REFRESHED_S: Final = 60.0  # it shows counts of all jobs: it is refreshed so often whatever its reader may see
ROWS: Final = 50


@dataclass(frozen=True)
class NowQuestion:
    """How many idle jobs."""

    limit: Annotated[int, Meta(ge=0, le=MAX_ROWS)] = PAGE


def _now(reading: Reading) -> "NowReads":
    from gpuwaste.ledger.now.now_reads import NowReads

    return reading.get(NowReads)


def now(reading: Reading, scope: Scope, question: NowQuestion) -> NowDocument | bytes:
    """Report what the cluster does now: GPUs held and idle, nodes that report nothing, the queue.

    Others than operators see counts of all, and only the jobs and nodes of their own jobs; `limit` is of idle jobs.
    """
    return _now(reading).answer(scope, question.limit)


def _document(asked: PageRequest) -> NowDocument:

    page_number(asked.query)  # a wrong one is refused before anything is read
    return _now(asked.reading).document(asked.scope, MAX_ROWS if asked.form else ROWS)


def _page(asked: PageRequest, document: NowDocument) -> str:

    grid = _now(asked.reading).grid(document)
    return now_page(document, page_number(asked.query), asked.frame, lambda other: f"/now?page={other}#nodes", grid)


def _all(_: Reading, __: Scope, ___: str) -> None:
    return None


def _renewing(reading: Reading) -> Renewing:
    return _now(reading)


def _levels(totals: NowTotals) -> dict[str, float]:
    names = ("high", "moderate", "low", "idle", "unknown", "suspended")
    return {name: float(getattr(totals, name)) for name in names}


def _sentence(document: NowDocument) -> str:
    totals = document.totals
    silent = totals.silent_nodes
    nodes = f"{silent} {'node reports' if silent == 1 else 'nodes report'} nothing" if silent else "every node reports"
    if not totals.held:
        return f"No GPU is held by a job now; {nodes}."
    of = f" of {totals.gpus:,}" if totals.gpus else ""  # where nodes are not known, neither is their sum
    jobs = f"by {totals.idle_jobs:,} {'job' if totals.idle_jobs == 1 else 'jobs'}"
    if not totals.idle:
        if totals.held == 1 and not of:
            return f"1 GPU is held by a job now, and it is not reported idle; {nodes}."
        are = "is" if totals.held == 1 else "are"
        return f"{totals.held:,}{of} GPUs {are} held by jobs now, and none of them is reported idle; {nodes}."
    are = f"{'GPU' if totals.idle == 1 and not of else 'GPUs'} {'is' if totals.idle == 1 else 'are'}"
    return f"{totals.idle:,}{of} {are} held and idle now, {jobs}; {nodes}."


def job_link(job: IdleJob) -> str:
    """Return the id by which the page of a job is found: of an array its own."""
    return job.printed_id.partition("_[")[0]


def now_page(
    document: NowDocument, number: int, frame: Frame, url: Callable[[int], str], grid: Markup | None = None
) -> str:
    """Return the page; `number` is that of the table of nodes, `url` the address of another one.

    `grid` is the drawing of the nodes, where that was made before.
    """
    framed = replace(frame, links={"csv": "/now.csv", "json": "/now.json"})
    first = min((number - 1) * ROWS, max(0, len(document.nodes) - 1) // ROWS * ROWS)
    number = first // ROWS + 1
    return page(
        "now",
        framed,
        now=document,
        sentence=_sentence(document),
        levels=_levels(document.totals),
        grid=node_grid(document.nodes) if grid is None else grid,
        nodes=document.nodes[first : first + ROWS],
        first=first,
        more_nodes=max(0, len(document.nodes) - MOST_NODES),
        before=url(number - 1) if first else None,
        after=url(number + 1) if first + ROWS < len(document.nodes) else None,
        job_link=job_link,
        told=told,
        changes=f"/now/changes?after={frame.place}",
    )


def told(job: IdleJob) -> str:
    """Return the strongest that the user was told at submission, "" for nothing."""
    said = {row.action for row in job.advice if row.said is not False}
    return next((action for action in ("reject", "warn", "annotate") if action in said), "")


RESOURCES = (
    Resource(path="/v1/now", question=NowQuestion, document=NowDocument, read=now),
    Page(
        path="/now",
        document=_document,
        html=_page,
        forms=FORMS,
        follow=Follow(every_s=REFRESHED_S, jobs=_all, renewing=_renewing),
    ),
)

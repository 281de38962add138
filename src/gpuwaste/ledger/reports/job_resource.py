"""Reports on a job: /v1/jobs/ID and the page /jobs/ID, and /helpdesk with a reply to its owner."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpuwaste.core.scope import Scope
from gpuwaste.ledger.reports.job_types import JobDocument
from gpuwaste.ledger.reports.report_question import JobQuestion
from gpuwaste.show.page_query import node_name
from gpuwaste.show.resource import FORMS, Follow, Page, PageRequest, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.ledger.reports.document_queries import DocumentQueries

_REFRESHED_S = 300.0


@dataclass(frozen=True, kw_only=True)
class PrintedJobQuestion(JobQuestion):
    """A job, as Slurm prints its id."""

    job_id: str


def _queries(reading: Reading) -> "DocumentQueries":
    from gpuwaste.ledger.reports.document_queries import DocumentQueries

    return reading.get(DocumentQueries)


def job(reading: Reading, scope: Scope, question: PrintedJobQuestion) -> JobDocument:
    """Report on the runs of one job: 7, 3_1 or 4+1; `owner` narrows the view to that of this user.

    `start` picks the runs that started at this UTC second, `ended_since` the last run unless it ended before then.
    """
    return _queries(reading).job(scope, question.job_id, question)


def _document(asked: PageRequest) -> JobDocument:
    """Return a job, array or het job with its hours, its owner's appeals and its keeps."""
    from gpuwaste.ledger.appeals.appeal_service import Appeals
    from gpuwaste.ledger.run_keeps import RunKeeps
    from gpuwaste.slurm.run_key import RunKey

    found = _queries(asked.reading).job(asked.scope, asked.name, hours=True)
    runs = [RunKey(run.cluster, run.job_id, run.start) for run in found.runs if run.start is not None]
    kept = asked.reading.get(RunKeeps).kept(runs, asked.reading.now())
    appeals = asked.reading.get(Appeals).of(runs, staff=asked.scope.everything)
    return replace(found, appeals=appeals, kept=kept)


def _page(asked: PageRequest, document: JobDocument) -> str:
    from gpuwaste.ledger.reports.job_page import job_page

    return job_page(document, asked.frame, node_name(asked.query))


def _jobs(reading: Reading, scope: Scope, printed_id: str) -> frozenset[int]:
    return frozenset(run.job_id for run in _queries(reading).runs(scope, printed_id))


def _helped(asked: PageRequest) -> JobDocument | None:
    wanted = asked.query.get("id", "").strip()
    return _queries(asked.reading).job(asked.scope, wanted) if wanted else None


def _helpdesk(asked: PageRequest, document: JobDocument | None) -> str:
    from gpuwaste.ledger.reports.job_page import helpdesk_page

    return helpdesk_page(document, asked.url, asked.frame)


RESOURCES = (
    Resource(
        path="/v1/jobs/{job_id}",
        question=PrintedJobQuestion,
        document=JobDocument,
        read=job,
        pool="reports",
        standby=True,
    ),
    Page(
        path="/jobs/{job_id}",
        document=_document,
        html=_page,
        forms=FORMS,
        standby=True,
        follow=Follow(every_s=_REFRESHED_S, jobs=_jobs),
    ),
    Page(path="/helpdesk", document=_helped, html=_helpdesk, standby=True),
)

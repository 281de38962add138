"""GET /v1/report, /v1/jobs, /v1/top: the ledger as documents."""

from fastapi import FastAPI, Request, Response

from gpuwaste.hub.exchange import Exchange, Name, Number
from gpuwaste.hub.openapi import answers
from gpuwaste.ledger.reports.report_reads import ReportQuestion
from gpuwaste.ledger.reports.report_types import JobDocument, ReportDocument, TopDocument
from gpuwaste.ledger.reports.run_choice import JobQuestion


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    reads = exchange.services.reads

    @app.get("/v1/report", responses=answers(ReportDocument))
    async def report(
        request: Request,
        *,
        user: Name | None = None,
        account: Name | None = None,
        cluster: Name | None = None,
        start: Number | None = None,
        end: Number | None = None,
        limit: Number | None = None,
    ) -> Response:
        """Report on a user, an account or all users; times are UTC seconds, by default 7 UTC days and today.

        `cluster` is names separated by commas, or "all": of several there is a row for each. With neither a user nor an
        account the report is on all users of these clusters, for operators.
        """
        question = ReportQuestion(user, account, cluster, start, end, limit)
        return await exchange.document(request, lambda scope: reads.report(scope, question), exchange.threads.reports)

    @app.get("/v1/jobs/{job_id}", responses=answers(JobDocument))
    async def job(
        request: Request,
        job_id: str,
        *,
        owner: Name | None = None,
        cluster: Name | None = None,
        start: Number | None = None,
        ended_since: Number | None = None,
    ) -> Response:
        """Report on the runs of one job: 7, 3_1 or 4+1; `owner` narrows the view to that of this user.

        `start` picks the runs that started at this UTC second, `ended_since` the last run unless it ended before then.
        """
        question = JobQuestion(owner, cluster, start, ended_since)
        return await exchange.document(
            request, lambda scope: reads.job(scope, job_id, question), exchange.threads.reports
        )

    @app.get("/v1/top", responses=answers(TopDocument))
    async def top(request: Request, since: Number | None = None, limit: Number | None = None) -> Response:
        """Report who is wasting GPUs now; `since` is UTC seconds, an hour ago by default."""
        return await exchange.document(request, lambda scope: reads.top(scope, since, limit), exchange.threads.reports)

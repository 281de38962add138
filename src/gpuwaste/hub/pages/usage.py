"""/me, /users/U, /accounts/A within the reader's scope."""

from dataclasses import replace
from typing import Final

from fastapi import Response
from starlette.datastructures import QueryParams

from gpuwaste.core.scope import Scope
from gpuwaste.core.units import DAY_S
from gpuwaste.hub.pages.forms import in_form, split_form
from gpuwaste.hub.pages.question import asked
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.reports.report_reads import ALL_CLUSTERS, ReportQuestion
from gpuwaste.ledger.reports.usage_page import ROWS, UsageQuery, usage_page
from gpuwaste.show.environment import Frame

_ALL: Final = 10_000  # lines of the table in JSON and CSV


class UsageViews:
    """The pages of a report."""

    def __init__(self, reads: DocumentQueries) -> None:
        self._reads = reads

    def me(self, scope: Scope, frame: Frame, query: QueryParams, form: str) -> Response:
        """Answer for the reader's own jobs. Raises Refusal."""
        return self._answer(scope, frame, query, form, ReportQuestion(user=scope.user))

    def user(self, scope: Scope, frame: Frame, query: QueryParams, name: str) -> Response:
        """Answer for the jobs of a user. Raises Refusal."""
        user, form = split_form(name)
        return self._answer(scope, frame, query, form, ReportQuestion(user=user))

    def account(self, scope: Scope, frame: Frame, query: QueryParams, name: str) -> Response:
        """Answer for the jobs of an account. Raises Refusal."""
        account, form = split_form(name)
        return self._answer(scope, frame, query, form, ReportQuestion(account=account))

    def _answer(self, scope: Scope, frame: Frame, query: QueryParams, form: str, subject: ReportQuestion) -> Response:
        wanted = asked(query, frame.path.removesuffix(form), self._reads.now())
        # What ends now ends with the document: runs may have been judged a minute ago.
        end = wanted.end if query.get("end") else None
        cluster = wanted.cluster or (ALL_CLUSTERS if self._reads.several_clusters() else None)
        question = replace(subject, start=wanted.start, end=end, lines=wanted.lines, cluster=cluster)
        return in_form(
            form,
            lambda: self._page(scope, frame, wanted, question),
            lambda: self._reads.report(scope, replace(question, limit=_ALL)),
        )

    def _page(self, scope: Scope, frame: Frame, wanted: UsageQuery, question: ReportQuestion) -> str:
        report = self._reads.report(scope, replace(question, limit=ROWS, offset=(wanted.number - 1) * ROWS))
        length_s = wanted.days * DAY_S if wanted.days else report.end - report.start
        before = self._reads.totals_before(scope, question, report.start, length_s)
        return usage_page(report, before, replace(wanted, start=report.start, end=report.end), frame)

"""Reports on users and accounts: /v1/report, /v1/top, and the pages /me, /users/U, /accounts/A."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpuwaste.core.fields import Number
from gpuwaste.core.refusal import BAD, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.reports.report_question import ALL_CLUSTERS, LineFilter, ReportQuestion
from gpuwaste.ledger.reports.report_types import ReportDocument, TopDocument
from gpuwaste.show.page_query import MAX_SECONDS, number, page_number, text
from gpuwaste.show.resource import FORMS, Page, PageRequest, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.ledger.reports.document_queries import DocumentQueries
    from gpuwaste.ledger.reports.usage_page import UsageQuery

_DAYS: Final = (7, 30, 90)
_ALL: Final = 10_000  # lines of the table in JSON and CSV


@dataclass(frozen=True)
class TopQuestion:
    """Since when, UTC seconds, and how many jobs."""

    since: Number | None = None
    limit: Number | None = None


def _queries(reading: Reading) -> "DocumentQueries":
    from gpuwaste.ledger.reports.document_queries import DocumentQueries

    return reading.get(DocumentQueries)


def report(reading: Reading, scope: Scope, question: ReportQuestion) -> ReportDocument:
    """Report on a user, an account or all users; times are UTC seconds, by default 7 UTC days and today.

    `cluster` is names separated by commas, or "all": of several there is a row for each. With neither a user nor an
    account the report is on all users of these clusters, for operators.
    """
    return _queries(reading).report(scope, question)


def top(reading: Reading, scope: Scope, question: TopQuestion) -> TopDocument:
    """Report who is wasting GPUs now; `since` is UTC seconds, an hour ago by default."""
    return _queries(reading).top(scope, question.since, question.limit)


def _query(query: Mapping[str, str], path: str, now: int) -> "UsageQuery":
    """Return the parameters of a page of usage at `now`, UTC seconds. Raises Refusal 400."""
    from gpuwaste.ledger.reports.usage_page import asked_of

    days = number(query, "days", _DAYS[-1])
    if days is not None and days not in _DAYS:
        raise Refusal(BAD, f"days={days}: expected one of {', '.join(map(str, _DAYS))}")
    start, end = number(query, "start", MAX_SECONDS), number(query, "end", MAX_SECONDS)
    lines = LineFilter(**{name: text(query, name) for name in ("state", "partition", "name", "finding")})
    return asked_of(path, (days, start, end), now, lines, page_number(query), cluster=text(query, "cluster") or "")


def _asked(asked: PageRequest, subject: ReportQuestion) -> "tuple[UsageQuery, ReportQuestion]":
    """Return the parameters of a page, and the question for its report."""
    wanted = _query(asked.query, asked.frame.path.removesuffix(asked.form), asked.reading.now())
    # A window until now ends with the document: runs may have been judged a minute ago.
    end = wanted.end if asked.query.get("end") else None
    several = _queries(asked.reading).several_clusters
    cluster = wanted.cluster or (ALL_CLUSTERS if several() else None)
    return wanted, replace(subject, start=wanted.start, end=end, lines=wanted.lines, cluster=cluster)


class _Usage:
    """The page of a report on the user or account of a request."""

    def __init__(self, subject: Callable[[PageRequest], ReportQuestion]) -> None:
        self._subject = subject

    def document(self, asked: PageRequest) -> ReportDocument:
        """Return the report: one page of lines, or for another format all lines."""
        from gpuwaste.ledger.reports.usage_page import ROWS

        wanted, question = _asked(asked, self._subject(asked))
        limit, offset = (_ALL, 0) if asked.form else (ROWS, (wanted.number - 1) * ROWS)
        return report(asked.reading, asked.scope, replace(question, limit=limit, offset=offset))

    def html(self, asked: PageRequest, document: ReportDocument) -> str:
        """Return the page."""
        from gpuwaste.ledger.reports.usage_page import usage_page

        wanted, question = _asked(asked, self._subject(asked))
        length_s = wanted.days * DAY_S if wanted.days else document.end - document.start
        before = _queries(asked.reading).totals_before(asked.scope, question, document.start, length_s)
        return usage_page(document, before, replace(wanted, start=document.start, end=document.end), asked.frame)


_PAGES: Final = {
    "/me": _Usage(lambda asked: ReportQuestion(user=asked.scope.user)),
    "/users/{user}": _Usage(lambda asked: ReportQuestion(user=asked.name)),
    "/accounts/{account}": _Usage(lambda asked: ReportQuestion(account=asked.name)),
}
RESOURCES = (
    Resource(
        path="/v1/report", question=ReportQuestion, document=ReportDocument, read=report, pool="reports", standby=True
    ),
    Resource(path="/v1/top", question=TopQuestion, document=TopDocument, read=top, pool="reports", standby=True),
    *(Page(path=path, document=one.document, html=one.html, forms=FORMS, standby=True) for path, one in _PAGES.items()),
)

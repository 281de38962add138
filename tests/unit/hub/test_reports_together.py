"""Reports of several readers at once, and what they compare with: those that each would get alone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest
from msgspec import to_builtins
from tests.unit.hub.test_few_runs import OPEN, TAKEN, USERS, site
from tests.unit.hub.test_judging import LEDGER
from tests.unit.store.test_rollup import same

from gpuwaste.core.scope import ClusterAccount, Scope
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.open_runs import SharedRuns
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.reports.report_question import ReportQuestion
from gpuwaste.testing.clocks import FakeClock

pytestmark = pytest.mark.long

OPERATOR: Final = Scope("root", everything=True)
COORDINATOR: Final = Scope("user3", accounts=frozenset({ClusterAccount("gw", "a")}))
LENGTH_S: Final = 3 * DAY_S
Both = tuple[DocumentQueries, DocumentQueries]


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    """Return what reads runs that are judged together, and what judges anew for each reader."""
    store, clock = site(1), FakeClock(TAKEN)
    shared = SharedRuns(store, LEDGER, clock, least=1)
    reads = DocumentQueries(store, LEDGER, clock, shared)
    reads.report(OPERATOR, ReportQuestion(user="user0", start=OPEN[0], limit=50))
    shared.worker.turn()
    yield reads, DocumentQueries(store, LEDGER, clock)
    store.close()


def test_users_who_are_asked_for_at_once_get_their_own_reports(both: Both) -> None:
    """Every number of each report is that of a report alone."""
    together, alone = both
    questions = [
        ReportQuestion(user=user, start=OPEN[0], limit=50, offset=offset) for user in USERS for offset in (0, 1)
    ]
    with ThreadPoolExecutor(len(questions)) as pool:
        reports = list(pool.map(lambda question: together.report(OPERATOR, question), questions))
    for question, report in zip(questions, reports, strict=True):
        same(to_builtins(alone.report(OPERATOR, question)), to_builtins(report))


@pytest.mark.parametrize("scope", [OPERATOR, COORDINATOR])
def test_totals_before_are_those_of_each_reader(both: Both, scope: Scope) -> None:
    """Users and accounts have the totals that they have alone, as far as the reader may see them."""
    together, alone = both
    asked = [*(ReportQuestion(user=user) for user in USERS), ReportQuestion(account="a")]
    wholes = []
    for question in asked:
        found = [reads.totals_before(scope, question, OPEN[0], LENGTH_S) for reads in (together, alone)]
        same(*map(to_builtins, found))
        wholes.append(found[0])
    assert together._reports._past
    assert any(totals is not None and totals.gpu_s for totals in wholes)

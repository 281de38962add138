"""The way of a report's question to the store: few modules of the house, none of which a lower one calls again."""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import pytest
from tests.unit.hub.test_judging import LEDGER, STOP, judging
from tests.unit.store.test_rollup import DAY, new_store, row, run

from gpuwaste.core.scope import Scope
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.open_runs import SharedRuns
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.reports.report_question import ReportQuestion
from gpuwaste.store import database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock

NOW: Final = DAY + 8 * DAY_S + 7 * HOUR_S
START: Final = DAY + 5 * DAY_S
MOST: Final = 9
OPERATOR: Final = Scope("root", everything=True)
USER: Final = Scope("user1")
Ask = Callable[[DocumentQueries], object]
QUESTIONS: Final[dict[str, Ask]] = {
    "user": lambda reads: reads.report(USER, ReportQuestion(start=START, limit=50)),
    "account": lambda reads: reads.report(OPERATOR, ReportQuestion(account="a", start=START, limit=50)),
    "everybody": lambda reads: reads.report(OPERATOR, ReportQuestion(cluster="all", start=START)),
    "days before": lambda reads: reads.totals_before(USER, ReportQuestion(), START, 3 * DAY_S),
}


class Way:
    """Watches calls: the modules that are at work when the store is asked, and which were called again meanwhile."""

    def __init__(self) -> None:
        self.to_store: set[str] = set()
        self.again: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_name == "<genexpr>":
            return
        modules = list(_modules(frame))
        if modules and modules[0] == _module(frame):
            if modules[0] in modules[1:]:
                self.again.add((modules[1], f"{modules[0]}.{frame.f_code.co_qualname}"))
            if modules[0] == database.__name__:
                self.to_store.update(modules)


def _modules(frame: FrameType | None) -> Iterator[str]:
    """Yield the modules of the house that are at work, the last called first."""
    last = None
    while frame is not None:
        module = _module(frame)
        if module is not None and module != last:
            yield module
            last = module
        frame = frame.f_back


def _module(frame: FrameType) -> str | None:
    """Return a frame's module of the house; None for what dataclasses generate there."""
    name = str(frame.f_globals.get("__name__"))
    generated = frame.f_code.co_name.startswith("__")
    return name if name.startswith("gpuwaste.") and not generated else None


@contextmanager
def watched() -> Iterator[Way]:
    way, before = Way(), sys.getprofile()
    sys.setprofile(way)
    try:
        yield way
    finally:
        sys.setprofile(before)


@pytest.fixture(scope="module")
def store() -> Iterator[HubStore]:
    """Return a store with settled and open runs, some across an edge of the window."""
    found, rng = new_store(), random.Random(3)
    jobs = [run(1 + d, d * 24, 30, user="user1") for d in range(7)]
    still_open = run(99, 4 * 24, 24, user="user1", state="RUNNING", end=None, elapsed_s=None)
    upsert_jobs(found, [*jobs, still_open])
    upsert_hours(found, [row(job, 0, hour, rng) for job in (*jobs, still_open) for hour in range(3)])
    judging(found, now=NOW, step_runs=50).step(STOP)
    yield found
    found.close()


@pytest.mark.parametrize("together", [True, False], ids=["judged together", "judged alone"])
def test_a_question_passes_few_modules_and_none_twice(store: HubStore, together: bool) -> None:
    """Whatever is asked, nothing below calls back; all questions pass nine modules, those of the store included."""
    clock, passed = FakeClock(NOW), set[str]()
    shared = SharedRuns(store, LEDGER, clock, least=1) if together else None
    reads = DocumentQueries(store, LEDGER, clock, shared)
    if shared is not None:
        for ask in QUESTIONS.values():
            ask(DocumentQueries(store, LEDGER, clock, shared))
        assert shared.take() is not None
    for ask in QUESTIONS.values():
        with watched() as way:
            assert ask(reads) is not None
        assert not way.again
        assert HubStore.__module__ in way.to_store
        passed |= way.to_store
    assert len(passed) <= MOST, sorted(passed)
    assert SharedRuns.__module__ in passed or not together

"""The compiled schedulers against their definitions, job by job, and the traps of each definition."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.public_data import public
from tests.unit.sim import reference
from tests.unit.sim.reference import Job

from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.sim.schedulers import conservative, easy, fcfs, sjf
from gpuwaste.sim.trace import Planned, trace_of

pytestmark = pytest.mark.long

REFERENCES: dict[str, tuple[Any, Callable[..., None]]] = {
    "fcfs": (fcfs, reference.in_order(lambda _: 0)),
    "sjf": (sjf, reference.in_order(lambda job: job.believed)),
    "easy": (easy, reference.easy),
    "conservative": (conservative, reference.conservative),
}


@st.composite
def traces(draw: st.DrawFn, *, outlast: bool) -> tuple[list[Job], int]:
    """Draw small machines with crowded instants; `outlast`: what is believed may be less than a job runs."""
    total = draw(st.integers(1, 12))
    jobs = []
    for _ in range(draw(st.integers(1, 25))):
        run = draw(st.integers(0, 12))
        limit = max(1, run + draw(st.integers(0, 10)))
        believed = draw(st.integers(1, limit)) if outlast else limit
        jobs.append(
            Job(draw(st.integers(0, 30)), run, believed, limit, draw(st.integers(1, total)), draw(st.integers(0, 2)))
        )
    return sorted(jobs, key=lambda job: job.submit), total


def starts(module: Any, jobs: list[Job], total: int, *, recent: bool = False) -> list[int]:
    """Return the starts by a compiled scheduler."""
    *columns, user = (np.array(column, dtype=np.int64) for column in zip(*jobs, strict=True))
    planned = Planned._make([*columns, user if recent else user[:0]])
    found: list[int] = module.starts(planned, total).tolist()
    return found


@pytest.mark.parametrize("name", REFERENCES)
@given(drawn=traces(outlast=False))
def test_each_start_is_the_definitions(name: str, drawn: tuple[list[Job], int]) -> None:
    """With limits that hold, each job starts when the plain definition starts it."""
    module, decide = REFERENCES[name]
    assert starts(module, *drawn) == reference.played(*drawn, decide)


@pytest.mark.parametrize("name", REFERENCES)
@given(drawn=traces(outlast=True))
def test_jobs_that_outlast_what_was_believed(name: str, drawn: tuple[list[Job], int]) -> None:
    """With walltimes that are believed too short, each job starts when the plain definition starts it."""
    module, decide = REFERENCES[name]
    assert starts(module, *drawn) == reference.played(*drawn, decide)


@pytest.mark.parametrize("name", REFERENCES)
@given(drawn=traces(outlast=False))
def test_walltimes_by_a_users_last_two_jobs(name: str, drawn: tuple[list[Job], int]) -> None:
    """With the mean of each user's last two jobs, each job starts when the plain definition starts it."""
    module, decide = REFERENCES[name]
    assert starts(module, *drawn, recent=True) == reference.played(*drawn, decide, recent=True)


def test_easy_keeps_the_reservation_of_a_long_first_job() -> None:
    """Early finishers do not push back the job that is first in the queue."""
    jobs = [Job(0, 10, 100, 100, 3), Job(1, 50, 50, 50, 4), *(Job(2 + k, 90, 100, 100, 1) for k in range(20))]
    assert starts(easy, jobs, 4)[1] <= 100


def test_easy_counts_every_job_that_ends_at_the_shadow_time() -> None:
    """Processors that become free at the shadow time together are extra for a long small job."""
    jobs = [Job(0, 10, 10, 10, 2), Job(0, 10, 10, 10, 1), Job(1, 5, 5, 5, 2), Job(2, 50, 50, 50, 1)]
    assert starts(easy, jobs, 4) == [0, 0, 10, 2]


def test_ten_jobs_on_one_node_take_an_hour_and_on_three_times_ten_nodes_24_minutes() -> None:
    """The emulator's two tests of the thesis: 1.0 h at 100 %, 0.4 h at 83.33 %."""
    for procs, total, hours in ((1, 1, 1.0), (10, 30, 0.4)):
        jobs = [Job(0, 360, 360, 360, procs)] * 10
        ends = [start + 360 for start in starts(easy, jobs, total)]
        assert max(ends) == hours * 3600


@pytest.mark.drawn
@pytest.mark.parametrize("name", REFERENCES)
def test_the_beginning_of_a_real_log_starts_as_the_definition_says(name: str) -> None:
    """The first jobs of KTH-SP2, real sizes and limits, start when the definition starts them."""
    trace, _ = trace_of(swf_table(public("swf/KTH-SP2-1996-2.1-cln.swf.xz")).table, 100)
    count = 40 if few() else 250
    *columns, _ = trace.first(count).planned(trace.limit_s[:count])
    jobs = [Job(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    module, decide = REFERENCES[name]
    assert starts(module, jobs, 100) == reference.played(jobs, 100, decide)

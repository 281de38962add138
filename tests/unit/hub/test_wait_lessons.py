"""What the hub learns from starts of jobs that it had predicted."""

from dataclasses import replace

import pytest
from tests.unit.plan.test_live_queue import NODE_LIST, NOW, job

from gpuwaste.advice.predict.conformal_shifts import MIN_ENDS
from gpuwaste.plan.live_queue import live_queue
from gpuwaste.plan.start_time.run_times import PastRuns
from gpuwaste.plan.wait_lessons import SAMPLED, WaitLessons
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob


def step(lessons: WaitLessons, now: int, *jobs: RunningJob) -> None:
    """Let the hub look at the queue."""
    queue = live_queue(jobs, NODE_LIST, "gpu", PastRuns(), now)
    lessons.step(queue, {one.job_id: one for one in jobs})


@pytest.mark.long
def test_waits_that_are_always_longer_raise_what_is_expected() -> None:
    """Jobs are predicted to start at once and start an hour later, again and again: p90 becomes about an hour."""
    lessons = WaitLessons()
    now = NOW
    for number in range(1, 3 * MIN_ENDS):
        waiting = job(number, submit=now)
        step(lessons, now, waiting)
        now += 7200
        step(lessons, now, replace(waiting, state="RUNNING", start=now - 3600, node_list="gpu1"))
    assert lessons.shifts.apply([0.0, 0.0, 0.0])[2] > 1800


def test_what_never_started_teaches_nothing() -> None:
    """Cancelled before the start, requeued, or forgotten by slurmctld: no lesson, and nothing is kept of it."""
    lessons = WaitLessons()
    step(lessons, NOW, job(1), job(2), job(3))
    step(lessons, NOW + 60, job(1, state="CANCELLED"), job(2, state="RUNNING", start=NOW + 9, restarts=1))
    assert (lessons._said_at, len(lessons._open)) == ({}, 0)
    assert lessons.shifts.apply([0.0, 60.0, 120.0])[1] == WaitLessons().shifts.apply([0.0, 60.0, 120.0])[1]


def test_a_long_queue_is_sampled() -> None:
    """Of hundreds of new jobs a few are predicted: the rest would cost too much."""
    lessons = WaitLessons()
    step(lessons, NOW, *(job(number) for number in range(1, 300)))
    assert len(lessons._said_at) == SAMPLED

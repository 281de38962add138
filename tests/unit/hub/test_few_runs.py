"""Runs that are read and added up here: every answer is that of the store's queries, for one user and for many."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import product
from typing import Any, Final

import pytest
from msgspec import to_builtins
from tests.unit.hub.test_judging import LEDGER, STOP, judging
from tests.unit.store.test_rollup import DAY, new_store, row, run, same

from gpuwaste.core.scope import ClusterAccount
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import HOUR_MS, AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.judged_runs import TAKEN_RUNS, judged_runs
from gpuwaste.ledger.open_runs import OpenRunJudge, OpenRunSnapshot
from gpuwaste.ledger.reports.report_builder import (
    ReportLines,
    report_document,
    report_totals,
    totals_by_account,
    user_reports,
)
from gpuwaste.ledger.reports.report_question import LineFilter
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.ledger.tally import Tally
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore

pytestmark = pytest.mark.long

SEEDS: Final = range(2)
TAKEN: Final = DAY + 8 * DAY_S + 7 * HOUR_S + 1800
OPEN: Final = (DAY + 5 * DAY_S, TAKEN)
PAST: Final = (DAY + 2 * DAY_S, DAY + 5 * DAY_S)
USERS: Final = [f"user{n}" for n in range(4)]
STATES: Final = ("COMPLETED", "COMPLETED", "FAILED", "REQUEUED")
LINES: Final = (
    ReportLines(),
    ReportLines(3, 2),
    ReportLines(3, 1, LineFilter(state="FAILED")),
    ReportLines(None, 0, LineFilter(partition="gpu", finding="gpus_untouched")),
    ReportLines(9, 0, LineFilter(name="TRAIN")),
)


def drawn(rng: random.Random) -> tuple[list[JobRecord], list[AllocationHour]]:
    """Return jobs of four users: arrays, requeued runs, small and idle ones, some across the edges of windows."""
    jobs = []
    for number in range(60):
        start, hours = rng.randrange(8 * 24), rng.randint(1, 30)
        task = rng.randrange(4) if rng.random() < 0.4 else None
        ends = {} if start + hours < 8 * 24 + 7 else {"state": "RUNNING", "end": None, "elapsed_s": None}
        changes = {
            "user": rng.choice(USERS), "account": rng.choice("ab"), "partition": rng.choice(["gpu", "long"]),
            "name": rng.choice(["train", "Train2", "sweep"]), "state": rng.choice(STATES), "gpu_type": "a100",
            "array_job_id": None if task is None else 7000 + number % 5, "array_task_id": task,
        }  # fmt: skip
        again = 100 + (number - 1 if number and rng.random() < 0.1 else number)
        jobs.append(run(again, start, hours, rng.choice([1, 2, 4]), **(changes | ends)))
    rows = [
        _hour(job, gpu, hour, rng)
        for job in jobs
        for gpu in range(job.gpus or 0)
        for hour in range(((job.end or TAKEN) - (job.start or 0)) // HOUR_S)
        if rng.random() < 0.95
    ]
    return jobs, rows


def _hour(job: JobRecord, gpu: int, hour: int, rng: random.Random) -> AllocationHour:
    """Return an hour in which a GPU of every third job is idle, of another a little used, and of others anything."""
    found = row(job, gpu, hour, rng)
    use = {0: {0: HOUR_MS}, 1: {2: HOUR_MS}}.get(job.job_id % 3)
    if use is None:
        return found
    idle = use.get(0, 0)
    return replace(found, util_ms=use, idle_run_ms=idle, unknown_ms={}, suspended_ms=0, proc_seen=not idle)


def site(seed: int) -> HubStore:
    store = new_store()
    jobs, rows = drawn(random.Random(seed))
    upsert_jobs(store, jobs)
    upsert_hours(store, rows)
    judging(store, now=TAKEN, step_runs=50).step(STOP)
    return store


@contextmanager
def kept_site(seed: int) -> Iterator[tuple[HubStore, OpenRunSnapshot]]:
    store = site(seed)
    kept = OpenRunJudge(store).take(LEDGER, TAKEN, [(OPEN[0], None), PAST], 0)
    assert kept is not None
    yield store, kept
    store.close()


def answers(
    store: HubStore, selection: Selection, *, few_runs: int, cut: bool, kept: OpenRunSnapshot | None
) -> list[Any]:
    """Return all that a report asks for."""
    with (
        store.reader() as db,
        judged_runs(db, selection, LEDGER, TAKEN, cut=cut, few_runs=few_runs, kept=kept) as runs,
    ):
        sums = {str(group): asdict(found) for group, found in sorted(runs.sums().items())}
        jobs = sum(found["jobs"] for found in sums.values())
        lines = [
            [([task.key for task in line.tasks], line.printed_id, line.requeued) for line in found] + [matching]
            for asked in LINES
            for found, matching in [runs.lines(asked.limit, jobs, asked.lines, asked.offset)]
        ]
        rest = [runs.cut(), runs.days(), runs.worst_name(), runs.findings(None), runs.findings(2)]
        assert jobs
    return [sums, lines, rest]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_answer_is_that_of_the_queries(seed: int) -> None:
    """Sums, lines, days, names and findings of users and accounts, of windows that cut runs and of whole runs."""
    with kept_site(seed) as (store, kept):
        subjects = [
            Selection(user="user1"),
            Selection(user="user2", accounts=[ClusterAccount("gw", "a")]),
            Selection(account="b"),
        ]
        for subject, (start, end), cut, taken in product(subjects, (OPEN, PAST), (True, False), (kept, None)):
            asked = replace(subject, start=start, end=end)
            by_queries = answers(store, asked, few_runs=-1, cut=cut, kept=taken)
            same(by_queries, answers(store, asked, few_runs=TAKEN_RUNS, cut=cut, kept=taken))


@pytest.mark.parametrize("seed", SEEDS)
def test_reports_of_users_together_are_those_of_each(seed: int) -> None:
    """Users who are asked for at once get what each of them gets alone, and who has no job gets an empty report."""
    users = [*USERS, "nobody"]
    with kept_site(seed) as (store, kept), store.reader() as db:
        for window, lines in product((OPEN, PAST), LINES[:3]):
            together = user_reports(db, users, window, LEDGER, kept, asked=lines)
            assert list(together) == users
            for user in users:
                alone = report_document(
                    db,
                    "user",
                    user,
                    window[0],
                    window[1],
                    LEDGER,
                    TAKEN,
                    limit=lines.limit,
                    offset=lines.offset,
                    lines=lines.lines,
                )
                same(alone.to_json(), together[user].to_json())


@pytest.mark.parametrize("seed", SEEDS)
def test_totals_of_all_are_those_of_each(seed: int) -> None:
    """What is added up by user and account for all at once has the totals of each user."""
    with kept_site(seed) as (store, kept), store.reader() as db:
        found = totals_by_account(db, *PAST, LEDGER, kept)
        for user in USERS:
            alone = report_totals(db, "user", user, *PAST, LEDGER, TAKEN)
            theirs = [tally for (name, _), tally in found.items() if name == user]
            same(to_builtins(alone), Tally.sum(theirs).to_json())

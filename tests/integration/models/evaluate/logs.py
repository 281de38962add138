"""Small logs for the tests of evaluation."""

import random
from collections.abc import Iterable

from gpuwaste.jobs.history.job_table import JobTable, table_of
from gpuwaste.slurm.accounting.job_record import JobRecord

HOUR = 3600


def job(
    number: int, user: str, submit: int, run: int | None, state: str = "COMPLETED", *, limit: int = HOUR
) -> JobRecord:
    """Return a run that starts at its submission; None: it has not ended."""
    end = None if run is None else submit + run
    return JobRecord(
        cluster="c",
        job_id=number,
        submit=submit,
        user=user,
        time_limit_s=limit,
        req_tres="cpu=2,node=1",
        start=submit,
        end=end,
        elapsed_s=run,
        state="RUNNING" if run is None else state,
    )


def table(jobs: Iterable[JobRecord]) -> JobTable:
    """Return the table of runs."""
    return table_of(list(jobs))


def mixed_jobs(count: int = 600, *, by_run: bool = False, status: bool = True) -> list[JobRecord]:
    """Return jobs of ten users, some of whom fail often, a minute apart; `by_run`: a job fails where it runs long."""
    rng = random.Random(7)
    jobs = []
    for number in range(1, count + 1):
        user = rng.randrange(10)
        run = rng.randrange(30, 1800)
        failed = run > 1200 if by_run else rng.random() < user / 12
        state = ("FAILED" if failed else "COMPLETED") if status else ""
        jobs.append(job(number, f"u{user}", 1_700_000_000 + 60 * number, run, state))
    return jobs

"""Generated weeks of a campaign in a hub's store: jobs with their hours, idle less where their users are notified."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gpuwaste.act.campaigns.assignment import Assignment
from gpuwaste.act.campaigns.campaign_definition import Campaign
from gpuwaste.act.notify.notice_store import NoticeStore
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.hub_rows import hour, record

_DAY_S: Final = 86400
_HOUR_S: Final = 3600
_EVERY_DAYS: Final = 2
_FAILS: Final = 0.1  # of the jobs
_FREE: Final = 0.2  # of the days of a user


@dataclass(frozen=True, slots=True)
class GeneratedWeeks:
    """What was put into a store: jobs, and the GPU-hours that notified users saved."""

    jobs: int
    saved_h: float


def fill_weeks(
    store: HubStore,
    campaign: Campaign,
    assignment: Assignment,
    users: Sequence[str],
    share: float,
    *,
    first_job: int = 1,
) -> GeneratedWeeks:
    """Give each user a job of an hour every other day, before and in the campaign; the notified idle `share` less."""
    drawing = random.Random(7)  # noqa: S311 equal calls give equal weeks
    jobs: list[JobRecord] = []
    rows: list[AllocationHour] = []
    saved_s = 0
    days = range(campaign.before[0], campaign.end, _EVERY_DAYS * _DAY_S)
    for place, user in enumerate(users):
        usual = 600 + 60 * (place * 7 % 40)
        told_at = campaign.edges[assignment.notified_from(campaign, campaign.unit_of(user, "physics"))]
        for day in days:
            if drawing.random() < _FREE:
                continue
            start = day + 8 * _HOUR_S + 60 * (place % 50)
            idle = min(_HOUR_S, round(usual * drawing.uniform(0.5, 1.5)))
            left = round(idle * (1 - share)) if campaign.start <= start and told_at <= start else idle
            saved_s += idle - left
            failed = drawing.random() < _FAILS
            job, row = _run(first_job + len(jobs), user, start, left, failed=failed)
            jobs.append(job)
            rows.append(row)
    upsert_jobs(store, jobs)
    upsert_hours(store, rows)
    _send(store, campaign, assignment, users)
    return GeneratedWeeks(len(jobs), saved_s / _HOUR_S)


def _run(number: int, user: str, start: int, idle_s: int, *, failed: bool) -> tuple[JobRecord, AllocationHour]:
    """Return a run of an hour on one GPU that idles first, with its one row."""
    state, exit_code = ("FAILED", 1) if failed else ("COMPLETED", 0)
    run = record(
        number, user, "physics", submit=start - 60, start=start, end=start + _HOUR_S, elapsed_s=_HOUR_S, state=state,
        exit_code=exit_code,
    )  # fmt: skip
    row = hour(
        number, final=True, run_key=run.run_key, gpu_uuid=f"GPU-{number}", hour_utc=start // _HOUR_S * _HOUR_S,
        t0_ms=start * 1000, t1_ms=(start + _HOUR_S) * 1000, util_ms={0: idle_s * 1000, 90: (_HOUR_S - idle_s) * 1000},
        idle_run_ms=idle_s * 1000, last_active_ms=(start + _HOUR_S) * 1000, proc_seen=True, mem_max_b=1 << 30,
        mem_total_b=40 << 30, map_source="prolog", confidence="confirmed",
    )  # fmt: skip
    return run, row


def _send(store: HubStore, campaign: Campaign, assignment: Assignment, users: Sequence[str]) -> None:
    """Record a digest for each user and week: sent, or held back."""
    notices = NoticeStore(store, SystemClock())
    for week, (start, end) in enumerate(pairwise(campaign.edges)):
        rows = []
        for user in users:
            notified = assignment.notified_from(campaign, campaign.unit_of(user, "physics")) <= week
            status, why = ("sent", "") if notified else ("not", "held_back")
            rows.append({
                "user": user, "period_start": start, "status": status, "why": why, "address": f"{user}@example.org",
                "jobs": 3, "gpu_s": 3600.0, "wasted_s": 1800.0, "exempt_s": 0.0, "coverage": 1.0, "document": "",
            })  # fmt: skip
        # Each campaign has periods of its own.
        notices.add_period("digest", end - len(campaign.name), rows, dry=False)

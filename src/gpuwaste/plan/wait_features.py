"""The features of a wait at submission, as numbers: the request, the simulated queue, the earlier waits.

Sums are shares of the pool's processors; durations enter as logarithms. NaN means unknown. The result of simulating the
pool's queue forward is a hint for the trees, in seconds. Training, the benchmark and the hub compute the same features
with this code.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from gpuwaste.advice.predict.bundle import FeatureSet
from gpuwaste.plan.start_time.drawn_waits import waits_of
from gpuwaste.plan.start_time.run_times import PastRuns
from gpuwaste.plan.start_time.scheduler_queue import (
    LEVELS,
    Ints,
    QueueJobs,
    SchedulerQueue,
    checked,
    jobs_in_pools,
    one_node_each,
)
from gpuwaste.plan.start_time.start_expectation import QUANTILES
from gpuwaste.plan.start_time.wait_correction import log_wait
from gpuwaste.plan.wait_knowledge import GROUPS, JobRows, Knowledge, QueueInstant, Started, Usage

VERSION: Final = 1
TARGET: Final = "wait"
ROLLING: Final = (20, 50, 100, 300)  # waits of a partition and size
_SHORT: Final = 50  # starts used of a group
_NAN: Final = math.nan
_QUEUED: Final = ("all", "no_larger", "user", "account", "shape", "user_no_larger")
_OF_QUEUED: Final = ("count", "procs", "oldest", "median_age", "newest")
_OF_WAITS: Final = ("last", "mean3", "mean10", "p10", "p90", "max30", "day", "age")
_REQUEST: Final = ("procs", "procs_share", "limit", "work", "gpus", "gpus_share", "hour", "weekday", "pool")
_RUNNING: Final = ("free", "free_after", "gpus_free", "running", "waiting", "queued_work", "work_left")
_OWN: Final = ("user_running", "user_holds", "account_holds", "user_usage", "account_usage")
_HINTS: Final = ("sim_p10", "sim_p50", "sim_p90", "sim_limit", "last_of_shape")
NAMES: Final = (
    *_REQUEST,
    *_RUNNING,
    *_OWN,
    *(f"queued_{group}_{what}" for group in _QUEUED for what in _OF_QUEUED),
    *(f"waits_{group.replace(' ', '_')}_{what}" for group in GROUPS for what in _OF_WAITS),
    *_HINTS,
    *(f"rolling{count}_p{round(100 * level)}" for count in ROLLING for level in QUANTILES),
)


class Simulated(NamedTuple):
    """A simulated wait: p10, p50 and p90 with drawn run times, and the wait if every job runs until its limit."""

    p10: float
    p50: float
    p90: float
    to_the_limit: float


def simulated(at: QueueInstant, past: PastRuns, draws: int, seed: int) -> list[Simulated]:
    """Return the waits of each row of `at.asked`, each as if only it were submitted; 0 for one that fits no pool."""
    running = _jobs(at.running, past, at.now - at.running.start)
    waiting = _jobs(at.waiting, past, np.zeros(len(at.waiting.submit), np.int64))
    queue = checked(SchedulerQueue(at.now, one_node_each(at.capacity[None, :]), running, waiting))
    asked = _jobs(at.asked, past, np.zeros(len(at.asked.submit), np.int64))
    behind = [None] * len(at.asked.submit)
    found = np.quantile(np.maximum(waits_of(queue, asked, behind, draws, seed), 0), QUANTILES, 0, method="inverted_cdf")
    believed = queue._replace(running=_to_the_limit(queue.running), waiting=_to_the_limit(queue.waiting))
    longest = np.maximum(waits_of(believed, asked, behind, 1, 0)[0], 0)
    rows = np.column_stack((found.T, longest)).tolist()
    return [Simulated(*row) for row in rows]


def _jobs(rows: JobRows, past: PastRuns, since_s: Ints) -> QueueJobs:
    run = [
        past.quantiles(user, (procs, gpus, limit), limit)
        for user, procs, gpus, limit in zip(
            rows.user.tolist(), rows.procs.tolist(), rows.gpus.tolist(), rows.limit.tolist(), strict=True
        )
    ]
    quantiles = np.array(run, np.float64).reshape(len(run), len(LEVELS))
    return jobs_in_pools(rows.asks, rows.limit, quantiles, np.maximum(since_s, 0))


def _to_the_limit(jobs: QueueJobs) -> QueueJobs:
    return jobs._replace(run_s=np.repeat(jobs.limit_s[:, None].astype(np.float64), jobs.run_s.shape[1], axis=1))


def wait_features() -> FeatureSet:
    """Return the features of this version, for which a bundle of waits must be made."""
    digest = hashlib.sha256(json.dumps([VERSION, *NAMES]).encode()).hexdigest()
    return FeatureSet(VERSION, digest, NAMES, {TARGET: "quantiles"})


def vector(at: QueueInstant, row: int, known: Knowledge, hints: Simulated) -> list[float]:
    """Return the features of one row of `at.asked`, in the order of NAMES."""
    asked = at.asked
    total, gpus = (max(float(amount), 1.0) for amount in at.capacity)
    procs, limit = int(asked.procs[row]), int(asked.limit[row])
    found = [math.log(procs), procs / total, math.log(limit), math.log(procs * limit)]
    found += [math.log1p(int(asked.gpus[row])), int(asked.gpus[row]) / gpus]
    found += [at.now / 3600 % 24, at.now / 86400 % 7, float(asked.pool[row])]
    found += _machine(at, procs, total, gpus)
    found += _own(at, row, known.usage, total)
    found += _queued(at, row, total)
    last = known.waits.last(asked, row)
    for name in GROUPS:
        found += _summary(last[name], at.now)
    found += [log_wait(wait) for wait in (*hints, last_of_shape(last))]
    for said in rolling(last).values():
        found += [log_wait(wait) for wait in said]
    return found


def last_of_shape(last: Mapping[str, Sequence[Started]]) -> float:
    """Return the last wait of a job's shape, else of its partition, else 0."""
    waits = last["shape"] or last["partition"]
    return float(waits[-1].wait_s) if waits else 0.0


def rolling(last: Mapping[str, Sequence[Started]]) -> dict[int, list[float]]:
    """Return p10, p50, p90 of the last waits of a job's size, else of its partition, over each count of ROLLING."""
    waits = last["size"] or last["partition"]
    values = np.array([wait.wait_s for wait in waits], np.float64) if waits else np.zeros(1)
    return {count: np.quantile(values[-count:], QUANTILES).tolist() for count in ROLLING}


def _machine(at: QueueInstant, procs: int, total: float, gpus: float) -> list[float]:
    running, waiting = at.running, at.waiting
    free = total - float(running.procs.sum())
    left = np.maximum(running.limit - (at.now - running.start), 60) * running.procs
    return [
        free / total,
        (free - procs) / total,
        (gpus - float(running.gpus.sum())) / gpus,
        float(len(running.submit)),
        float(len(waiting.submit)),
        math.log1p(float((waiting.procs * waiting.limit).sum()) / total),
        math.log1p(float(left.sum()) / total),
    ]


def _own(at: QueueInstant, row: int, usage: Usage, total: float) -> list[float]:
    """Return what the user and the account hold, and their shares of recent usage."""
    running, user, account = at.running, int(at.asked.user[row]), int(at.asked.account[row])
    mine, ours = running.user == user, running.account == account
    held = [float(running.procs[rows].sum()) / total for rows in (mine, ours)]
    used = (running.procs * np.maximum(at.now - running.start, 0)).astype(np.float64)
    whole = usage.at(("pool", int(at.asked.pool[row])), at.now) + float(used.sum())
    shares = [
        (usage.at((name, number), at.now) + float(used[rows].sum())) / max(whole, 1.0)
        for name, number, rows in (("user", user, mine), ("account", account, ours))
    ]
    return [float(mine.sum()), *held, *shares]


def _queued(at: QueueInstant, row: int, total: float) -> list[float]:
    """Return counts, processors and ages of groups of waiting jobs."""
    waiting: JobRows = at.waiting
    procs, limit, user, account = (
        int(column[row]) for column in (at.asked.procs, at.asked.limit, at.asked.user, at.asked.account)
    )
    age = at.now - waiting.submit
    smaller = (waiting.procs <= procs) & (waiting.limit <= limit)
    groups = (
        np.ones(len(age), np.bool_),
        smaller,
        waiting.user == user,
        waiting.account == account,
        (waiting.procs == procs) & (waiting.limit == limit),
        (waiting.user == user) & smaller,
    )
    found: list[float] = []
    for rows in groups:
        ages = age[rows]
        found += [float(len(ages)), float(waiting.procs[rows].sum()) / total]
        if len(ages):
            found += [log_wait(float(value)) for value in (ages.max(), np.median(ages), ages.min())]
        else:
            found += [_NAN] * 3
    return found


def _summary(waits: Sequence[Started], now: int) -> list[float]:
    """Return the last log waits, means over more of them, their spread, and the time since the last start."""
    if not waits:
        return [_NAN] * len(_OF_WAITS)
    newest = list(islice(reversed(waits), _SHORT))
    logs = [log_wait(one.wait_s) for one in newest]
    today = [value for value, one in zip(logs, newest, strict=True) if one.at > now - 86400]
    ordered = sorted(logs[:30])
    return [
        logs[0],
        fmean(logs[:3]),
        fmean(logs[:10]),
        ordered[len(ordered) // 10],
        ordered[len(ordered) * 9 // 10],
        ordered[-1],
        fmean(today) if today else _NAN,
        math.log1p(max(now - newest[0].at, 0)),
    ]

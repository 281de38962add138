"""Figure: features of past jobs per second, microseconds for an update and a vector, and bytes of a remembered key.

Prints a table and one line of JSON. Beside ours stands the same from plain Python dicts and deques (testing's
plain_history). Memory is the growth of the process's resident set in a child of its own, and the bytes of the arrays.
"""

import argparse
import gc
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil

from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.jobs.history.history_keys import KEYS
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.histories import made_table, requests, vector_told
from gpuwaste.testing.plain_history import PlainHistory

SITE_KEYS = 5  # of a user at a large site: the user, two sizes, two names
MB = 1e6


def rate(jobs: int, rounds: int) -> list[float]:
    """Return jobs per second of replay over a table of that many jobs, each round with a table of its own."""
    rates = []
    for seed in range(rounds):
        table = made_table(jobs, users=max(jobs // 200, 10), seed=seed)
        began = time.perf_counter()
        result = replay_vectors(table)
        rates.append(jobs / (time.perf_counter() - began))
        del result, table
        gc.collect()
    return rates


def latencies(told: HistoryState | PlainHistory, asked: list[JobRequest]) -> dict[str, list[float]]:
    """Return microseconds of each vector and of each update (submission and end), jobs one after another."""
    vector, update, both = [], [], []
    for number, request in enumerate(asked):
        t0 = time.perf_counter_ns()
        vector_told(told, request)
        t1 = time.perf_counter_ns()
        told.submitted(request, number)
        told.ended(number, request.submit, request.submit + 60, 60.0, Outcome.COMPLETED)
        t2 = time.perf_counter_ns()
        vector.append((t1 - t0) / 1000)
        update.append((t2 - t1) / 1000)
        both.append((t2 - t0) / 1000)
    return {"vector": vector, "update": update, "both": both}


def site(users: int) -> list[JobRequest]:
    """Return submissions that give each user SITE_KEYS keys: his own, two sizes and two names."""
    return [
        JobRequest(f"user{user:06d}", 1_700_000_000 + user, name=f"job{'ab'[n]}", cpus=1 + n, time_limit_s=3600)
        for user in range(users)
        for n in range(2)
    ]


def grown(make: Callable[[], HistoryState | PlainHistory], users: int, answer: Any) -> None:
    """Fill a history and send back the growth of the resident set, the arrays' bytes, and the number of keys."""
    asked, process = site(users), psutil.Process()
    told = make()
    vector_told(told, asked[0])
    gc.collect()
    before = process.memory_info().rss
    for number, request in enumerate(asked):
        told.submitted(request, number)
        told.ended(number, request.submit, request.submit + 60, 60.0, Outcome.COMPLETED)
    gc.collect()
    after = process.memory_info().rss
    keys = told.keys.nbytes + told.recent.nbytes if isinstance(told, HistoryState) else 0
    count = (
        len(told.keys) if isinstance(told, HistoryState) else len(told.past) if isinstance(told, PlainHistory) else 0
    )
    answer.send((after - before, keys, count))


def memory(make: Callable[[], HistoryState | PlainHistory], users: int) -> tuple[int, int, int]:
    """Return what `grown` sends, from a fresh process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=grown, args=(make, users, theirs))
    child.start()
    theirs.close()
    result: tuple[int, int, int] = ours.recv()
    child.join()
    return result


def percentiles(values: list[float]) -> tuple[float, float]:
    """Return p50 and p99."""
    p50, p99 = np.percentile(values, [50, 99])
    return round(float(p50), 1), round(float(p99), 1)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="rows of the table that is replayed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--online", type=int, default=20_000, help="jobs told one by one")
    parser.add_argument("--users", type=int, default=100_000, help="users of the site whose memory is measured")
    options = parser.parse_args()
    rates = rate(options.jobs, options.rounds)
    asked = requests(made_table(options.online, users=500, seed=7))
    warm = replay(made_table(50_000, users=500, seed=8))
    ours, plain = latencies(warm, asked), latencies(PlainHistory(), asked)
    state_rss, state_bytes, keys = memory(HistoryState, options.users)
    plain_rss, _, plain_keys = memory(PlainHistory, options.users)
    print(
        f"{len(FEATURES)} features, {len(KEYS)} keys a job, {options.jobs} jobs, best of {options.rounds} rounds first"
    )
    print(f"{'what':<34} {'ours':>16} {'dicts and deques':>18}")
    plain_rate = round(1e6 / statistics.mean(plain["both"]))
    print(f"{'jobs/s, whole table':<34} {max(rates):>16.0f} {plain_rate:>18}")
    for name, text in (("vector", "vector"), ("update", "update: submission and end"), ("both", "both")):
        mine, other = percentiles(ours[name]), percentiles(plain[name])
        print(f"{text + ', us p50 / p99':<34} {f'{mine[0]} / {mine[1]}':>16} {f'{other[0]} / {other[1]}':>18}")
    print(f"{'bytes a key, resident':<34} {state_rss / keys:>16.0f} {plain_rss / plain_keys:>18.0f}")
    print(f"{f'MB for {keys} keys, resident':<34} {state_rss / MB:>16.1f} {plain_rss / MB:>18.1f}")
    print(f"{'MB in rows and index':<34} {state_bytes / MB:>16.1f}")
    both = percentiles(ours["both"])
    result = {
        "bench": "features",
        "features": len(FEATURES),
        "jobs_per_s": round(statistics.median(rates)),
        "jobs_per_s_min": round(min(rates)),
        "jobs_per_s_max": round(max(rates)),
        "vector_us_p50": percentiles(ours["vector"])[0],
        "vector_us_p99": percentiles(ours["vector"])[1],
        "update_us_p50": percentiles(ours["update"])[0],
        "update_us_p99": percentiles(ours["update"])[1],
        "both_us_p50": both[0],
        "both_us_p99": both[1],
        "keys": keys,
        "rss_mb": round(state_rss / MB, 1),
        "arrays_mb": round(state_bytes / MB, 1),
        "plain_rss_mb": round(plain_rss / MB, 1),
        "plain_jobs_per_s": plain_rate,
        "target_jobs_per_s": 100_000,
        "target_both_us": 50,
        "target_mb": 100,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

"""Facts of runs at instants: the one query, beside plain definitions."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.act.rules.rule_facts import GpuState, facts_of
from gpuwaste.act.rules.rule_file import load_rule
from gpuwaste.act.rules.rule_matching import matches, subjects
from gpuwaste.act.rules.rule_moments import Moment, node_facts, running_facts, waiting_facts
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.hub_rows import HOUR, record

DAY = 86400
SHIPPED = Path(__file__).parents[4] / "etc" / "rules.d"


@pytest.fixture
def store() -> Iterator[HubStore]:
    """Open a store in memory."""
    found = HubStore.open(":memory:", SystemClock())
    yield found
    found.close()


def drawn(seed: int) -> list[JobRecord]:
    """Return runs of three users over ten days, some failed, some short, some still running."""
    draw = random.Random(seed)
    jobs = []
    for number in range(1, 200):
        start = HOUR + draw.randrange(10 * DAY)
        length = draw.choice([10, 59, 60, 3600, 40_000])
        more: dict[str, Any] = {"submit": start - draw.randrange(5000), "start": start, "gpus": draw.randrange(3)}
        if draw.random() < 0.1:
            more |= {"end": None, "elapsed_s": None, "state": "RUNNING"}
        else:
            state = draw.choice(["COMPLETED", "FAILED", "OUT_OF_MEMORY", "CANCELLED"])
            more |= {"end": start + length, "elapsed_s": length, "state": state}
        jobs.append(record(number, draw.choice(["alice", "bob", "carol"]), **more))
    return jobs


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_users_record_is_as_of_each_moment(store: HubStore, seed: int, *, together: bool) -> None:
    """Several instants at once, as a replay asks for them, or one as in a pass: nothing that happened later counts."""
    jobs = drawn(seed)
    upsert_jobs(store, jobs)
    draw = random.Random(seed + 100)
    picked = [(job, (job.start or 0) + draw.randrange(5000)) for job in draw.sample(jobs, 40)]
    moments = [Moment(RunKey(job.cluster, job.job_id, job.start or 0), at, GpuState()) for job, at in picked]
    with store.reader() as db:
        found = []
        for part in [moments] if together else [[one] for one in moments]:
            running_facts(db, part)
            found += subjects(db, "running", range(len(part)))
    for (job, at), subject in zip(picked, found, strict=True):
        own = [one for one in jobs if one.user == job.user]
        ended = [one for one in own if one.end is not None and one.end <= at]
        recent = [one for one in ended if one.end and one.end > at - DAY]
        running = [one for one in own if (one.start or 0) <= at and (one.end is None or one.end > at)]
        wanted = {
            "user.running_jobs": len(running),
            "user.running_gpus": sum(one.gpus or 0 for one in running),
            "user.ended_1d": len(recent),
            "user.failed_1d": sum(one.state in {"FAILED", "OUT_OF_MEMORY"} for one in recent),
            "user.short_1d": sum((one.end or 0) - (one.start or 0) < 60 for one in recent),
            "queue.waiting_jobs": sum(one.submit <= at < (one.start or 0) for one in jobs),
        }
        assert {name: subject.facts[name] for name in wanted} == wanted
        week = [one for one in ended if one.end and one.end > at - 7 * DAY]
        hours = sum((one.gpus or 0) * ((one.end or 0) - (one.start or 0)) for one in week) / 3600
        assert subject.facts["user.gpu_h_7d"] == pytest.approx(hours)
        assert set(subject.facts) == set(facts_of("running"))


def test_the_array_rule_matches_ten_equal_failures_in_a_row(store: HubStore) -> None:
    """The waiting part of an array of which ten tasks failed alike; one that completed begins the count anew."""
    waiting: dict[str, Any] = {"start": None, "end": None, "elapsed_s": None, "state": "PENDING", "submit": HOUR}
    jobs = []
    for array, states in ((100, "FFFFFFFFFF"), (200, "FFFFFFFFFC"), (300, "CCFFFFFFFFFF"), (400, "FFFFFFFFF")):
        jobs.append(record(array, "alice", **waiting, array_job_id=array, printed_id=f"{array}_[20-99]"))
        for number, letter in enumerate(states, start=1):
            end = HOUR + 60 * number
            state = {"F": "FAILED", "C": "COMPLETED"}[letter]
            more: dict[str, Any] = {"start": end - 30, "end": end, "elapsed_s": 30, "submit": HOUR, "state": state}
            jobs.append(record(array + number, "alice", **more, exit_code=int(letter == "F"), array_job_id=array))
    upsert_jobs(store, jobs)
    rule = load_rule(SHIPPED / "runaway-array.toml")
    with store.reader() as db:
        waiting_facts(db, "gw", HOUR + 2000)
        hit = subjects(db, "waiting", matches(db, [rule])[0].places)
    assert [one.facts["job.id"] for one in hit] == [100, 300]


def test_the_node_rule_needs_failures_of_different_users(store: HubStore) -> None:
    """Five failures of three users in a row; five of one user, or with a success since, blame no node."""
    jobs = []
    nodes = {"n1": "abcab", "n2": "aaaaa", "n3": "abcabX"}
    for first, (node, users) in enumerate(nodes.items(), start=1):
        for number, user in enumerate(users):
            end = HOUR + 60 * number + 60
            state = "COMPLETED" if user == "X" else "FAILED"
            times: dict[str, Any] = {"start": end - 50, "end": end, "elapsed_s": 50, "submit": end - 60}
            jobs.append(record(100 * first + number, f"user{user}", **times, state=state, nodes=node, n_nodes=1))
    upsert_jobs(store, jobs)
    rule = load_rule(SHIPPED / "failing-node.toml")
    with store.reader() as db:
        node_facts(db, "gw", HOUR + 2000)
        hit = subjects(db, "node", matches(db, [rule])[0].places)
    assert [one.key for one in hit] == ["node/n1"]

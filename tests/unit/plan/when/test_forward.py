"""Starts on nodes with limits and reservations against a plain simulation, and thousands of jobs behind a limit."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.plan.when.plain import Job, Plain

from gpuwaste.plan.start_time.drawn_waits import waits_of
from gpuwaste.plan.start_time.scheduler_queue import (
    LEVELS,
    Holdings,
    Nodes,
    QueuedRequest,
    QueueJobs,
    QueueLimits,
    SchedulerQueue,
    checked,
    jobs_of,
)
from gpuwaste.plan.start_time.start_expectation import expect
from gpuwaste.sim.accounts import accounts_of
from gpuwaste.sim.assoc_limits import limit_table, tres_names, tres_row
from gpuwaste.slurm.site.cluster_model import Association, ClusterModel, LimitSet, Node, Partition, Qos

GPU = "gres/gpu"
MOST = {"qos": 9, "user0": 4, "user1": 4, "account": 6, "array": 2}
MODEL = ClusterModel(
    "c",
    (Node("n", 8, 1, {"a": 4}),),
    (Partition("p", ("n",)),),
    qos=(Qos("q", limits=LimitSet(grp_tres={GPU: 9}, max_tres_per_user={GPU: 4})), Qos("free")),
    associations=(
        Association("root", parent=""),
        Association("a", limits=LimitSet(grp_tres={GPU: 6})),
        Association("a", user="0", parent="a"),
        Association("b"),
        Association("b", user="1", parent="b"),
    ),
)
NAMES = tres_names(MODEL)
JOB = st.fixed_dictionaries({
    "gpus": st.integers(0, 4),
    "cpus": st.integers(1, 8),
    "nodes": st.sampled_from([1, 1, 1, 2, 3]),
    "pools": st.sampled_from([(0,), (1,), (0, 1)]),
    "limit": st.integers(1, 30),
    "early": st.integers(0, 29),
    "begin": st.sampled_from([0, 0, 0, 7]),
    "reservation": st.sampled_from([-1, -1, -1, 0]),
    "user": st.integers(0, 1),
    "qos": st.booleans(),
    "array": st.booleans(),
})  # fmt: skip


def plain_job(one: dict[str, int], *, limited: bool) -> Job:
    """Return a drawn job: its QOS, its user there and its account count its GPUs, its array counts jobs.

    A QOS with a limit of GPUs takes the place of the account's.
    """
    gpus = one["gpus"] * one["nodes"]
    limits: dict[str, int] = {}
    if limited and one["qos"]:
        limits = {"qos": gpus, f"user{one['user']}": gpus}
    if limited and one["user"] == 0:
        limits["account"] = gpus
    if limited and one["array"]:
        limits["array"] = 1
    asks, run = (one["cpus"], one["gpus"]), max(1, one["limit"] - one["early"])
    return Job(
        asks,
        one["nodes"],
        one["pools"],  # type: ignore[arg-type]
        one["limit"],
        run,
        one["begin"],
        one["reservation"],
        limits,
        ("account",) if one["qos"] else (),
    )


def row(one: Job, drawn: dict[str, int], *, limited: bool) -> QueuedRequest:
    """Return the job as a row."""
    qos, assoc = (0 if drawn["qos"] else 1, 2 if drawn["user"] == 0 else 4) if limited else (-1, -1)
    tres = tuple(tres_row(NAMES, {GPU: drawn["gpus"] * one.nodes}).tolist()) if limited else ()
    bits = sum(1 << p for p in one.pools)
    owner = (qos, -1, assoc, drawn["user"], 0 if limited and drawn["array"] else -1)
    return QueuedRequest(
        one.asks, bits, one.limit, [one.run] * len(LEVELS), one.begin, None, one.nodes, one.reservation, owner, tres
    )


@settings(deadline=None, max_examples=examples(150))
@given(
    st.lists(JOB, min_size=1, max_size=25),
    st.lists(st.tuples(JOB, st.integers(0, 7)), max_size=5),
    st.integers(2, 7),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=2),
    st.booleans(),
    st.booleans(),
)
def test_equal_to_a_plain_simulation(  # noqa: PLR0917 drawn
    drawn: list[dict[str, int]],
    ran: list[tuple[dict[str, int], int]],
    nodes: int,
    shut: list[tuple[int, int]],
    limited: bool,
    backfills: bool,
) -> None:
    """Each job starts when the plain one starts it, in which no node is ever over-full and no limit exceeded."""
    capacity = [[8, 4]] * nodes + [[6, 2]]
    pool = [0] * nodes + [1]
    closed = [((0,), begin, begin + length, number) for number, (begin, length) in enumerate(shut)]
    plain = Plain(capacity, pool, closed, MOST)
    waiting = [plain_job(one, limited=limited) for one in drawn]
    for each in waiting:
        if each.reservation >= len(closed):
            each.reservation = -1
    running: list[Job] = []
    rows: list[QueuedRequest] = []
    for one, place in ran:
        job, node = plain_job({**one, "nodes": 1}, limited=limited), place % (nodes + 1)
        held = [sum(other.asks[r] for other in running if node in other.on) + job.asks[r] for r in (0, 1)]
        over = any(
            sum(other.limits.get(name, 0) for other in running) + own > MOST[name] for name, own in job.limits.items()
        )
        if not over and all(amount <= most for amount, most in zip(held, capacity[node], strict=True)):
            job.on = [node]
            running.append(job)
            rows.append(row(job, one, limited=limited)._replace(begin_s=0, reservation=-1))
    expected = plain.play(running, waiting, backfills=backfills)
    table = limit_table(MODEL, accounts_of(MODEL.associations), NAMES, safe=False, hold=True)
    width = len(NAMES) if limited else 0
    queue = SchedulerQueue(
        0,
        Nodes(np.array(capacity), np.array(pool), np.array([(1, *one[1:]) for one in closed], np.int64).reshape(-1, 4)),
        jobs_of(rows, 2, width),
        jobs_of([row(job, one, limited=limited) for job, one in zip(waiting, drawn, strict=True)], 2, width),
        depth=1000,
        backfills=backfills,
        holdings=Holdings(
            np.arange(len(running)),
            np.array([job.on[0] for job in running], np.int64),
            np.array([job.asks for job in running], np.int64).reshape(-1, 2),
        ),
        limits=QueueLimits(table, np.array([MOST["array"]])) if limited else None,
    )
    queue = checked(queue)
    found = [
        int(waits_of(queue._replace(waiting=but(queue.waiting, k)), at(queue.waiting, k), [k], 1, 1)[0, 0])
        for k in range(len(waiting))
    ]
    assert found == expected


def but(jobs: QueueJobs, k: int) -> QueueJobs:
    """Return jobs without one."""
    return jobs.changed(lambda column: np.delete(column, k, axis=0))


def at(jobs: QueueJobs, k: int) -> QueueJobs:
    """Return one job."""
    return jobs.changed(lambda column: column[k : k + 1])


def crowd(jobs: int, most: int, gpus: int) -> SchedulerQueue:
    """Return a free node of so many GPUs, and jobs of one user of whom `most` GPUs may run at once, 100 s each."""
    model = replace(MODEL, qos=(Qos("q", limits=LimitSet(max_tres_per_user={GPU: most})),), associations=())
    table = limit_table(model, accounts_of(()), NAMES, safe=False, hold=True)
    tres = tuple(tres_row(NAMES, {GPU: 1}).tolist())
    one = QueuedRequest([1], 1, 100, [100] * len(LEVELS), owner=(0, -1, -1, 0, -1), tres=tres)
    machine, none = Nodes(np.array([[gpus]]), np.zeros(1, np.int64), np.empty((0, 4), np.int64)), np.empty(0, np.int64)
    empty, limits = jobs_of([], 1, len(NAMES)), QueueLimits(table, none)
    return SchedulerQueue(0, machine, empty, jobs_of([one] * jobs, 1, len(NAMES)), limits=limits)


def test_thousands_of_jobs_behind_a_limit_of_their_user() -> None:
    """4,000 jobs of a user who may run 4: another user's request starts now, the user's own after a thousand rounds."""
    queue = crowd(4000, 4, 16)
    tres = tuple(tres_row(NAMES, {GPU: 1}).tolist())
    own = QueuedRequest([1], 1, 100, [100] * len(LEVELS), owner=(0, -1, -1, 0, -1), tres=tres)
    other = own._replace(owner=(0, -1, -1, 1, -1))
    mine, theirs = expect(queue, [own, other], draws=2)
    assert mine is not None
    assert theirs is not None
    assert (mine.p50, theirs.p50) == (100_000, 0)


def test_a_request_above_its_limit_never_starts() -> None:
    """What a limit allows nobody at any time is no start, and keeps nothing for itself."""
    queue = crowd(10, 1, 4)
    two = tuple(tres_row(NAMES, {GPU: 2}).tolist())
    large = QueuedRequest([2], 1, 100, [100] * len(LEVELS), owner=(0, -1, -1, 1, -1), tres=two)
    assert expect(queue, [large], draws=1) == [None]

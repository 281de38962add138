"""The compiled model of Slurm's scheduler against a plain one, job by job, and each rule in a case of its own."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sim.slurm_reference import Job, Settings, Slurm

from gpuwaste.jobs.history.job_table import Categories
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board_setup import Requests, new_board
from gpuwaste.sim.slurm.cluster_arrays import layout
from gpuwaste.sim.slurm.ranks import ranks_of
from gpuwaste.sim.slurm.slurm_loop import play
from gpuwaste.slurm.site.cluster_model import (
    Association,
    ClusterModel,
    LimitSet,
    Node,
    Outage,
    Partition,
    Qos,
    Reservation,
)

pytestmark = pytest.mark.long
UNTIL = 1200


def parameters(settings: Settings) -> str:
    """Return the settings as slurm.conf has them."""
    words = {
        "bf_interval": settings.interval,
        "bf_window": settings.window // 60,
        "bf_resolution": settings.resolution,
        "bf_max_job_test": settings.max_tests,
        "bf_max_job_user": settings.max_of_user,
        "bf_max_job_start": settings.max_starts,
        "default_queue_depth": settings.depth,
        "sched_interval": settings.full_interval,
        "batch_sched_delay": settings.delay,
    }
    return ",".join([*(f"{name}={value}" for name, value in words.items()), *(["defer"] if settings.defer else [])])


OWN_CLOCK = np.empty((0, 2), np.int64)


def compiled(
    model: ClusterModel, jobs: list[Job], settings: Settings, passes: b.Ints = OWN_CLOCK
) -> list[tuple[int, int]]:
    """Return start and run of each job by the compiled model, at given passes or by its own clock."""
    laid = layout(model)
    rows = np.zeros((len(jobs), b.JOB_COLUMNS), np.int64)
    names = [part.name for part in model.partitions]
    users = Categories.of(job.user for job in jobs)
    for row, job in zip(rows, jobs, strict=True):
        kind = -1 if job.gpu_type is None else laid.gpu_types.index(job.gpu_type)
        place = names.index(job.partition)
        row[b.SUBMIT : b.USER] = [
            *(job.submit, job.run, job.believed, job.limit, place, job.nodes),
            *(job.cpus, job.memory, job.gpus, kind, model.partitions[place].whole_nodes),
        ]
        row[b.PRIORITY] = job.priority
    rows[:, b.USER] = users.codes
    levels = [qos.name for qos in model.qos]
    qos = np.array([levels.index(job.qos) if job.qos in levels else -1 for job in jobs], np.int64)
    model = ClusterModel(
        **{name: getattr(model, name) for name in ClusterModel.__dataclass_fields__ if name != "settings"},
        settings={**model.settings, "SchedulerParameters": parameters(settings)},
    )
    board = new_board(Requests(rows, qos), users, Categories.of([""]), model, laid)
    ranks = ranks_of(board.jobs, qos, users, Categories.of([""]), model)
    play(board, ranks, laid.events, passes, False)  # noqa: FBT003 compiled code takes no names
    return [(int(row[b.START]), int(row[b.RAN])) for row in board.jobs]


def plain(model: ClusterModel, jobs: list[Job], settings: Settings) -> list[tuple[int, int]]:
    """Return start and run of each job by the plain model."""
    Slurm(model, jobs, settings).play(UNTIL)
    assert not [job for job in jobs if job.state == "running"], "UNTIL is too short"
    return [(job.start, job.ran) for job in jobs]


TYPES = ("a100", "h100")


@st.composite
def clusters(draw: st.DrawFn) -> ClusterModel:
    """Draw a few nodes, of unequal size and weight, in partitions that overlap."""
    nodes = []
    for k in range(draw(st.integers(1, 5))):
        gpus = {name: count for name in TYPES if (count := draw(st.integers(0, 2)))}
        cpus, memory = draw(st.integers(1, 4)), draw(st.integers(1, 4))
        nodes.append(Node(f"n{k}", cpus, memory, gpus, weight=draw(st.integers(1, 2))))
    names = [node.name for node in nodes]
    parts = []
    for k in range(draw(st.integers(1, 3))):
        own = names if k == 0 else draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        parts.append(
            Partition(f"p{k}", tuple(own), priority_tier=draw(st.integers(1, 2)), whole_nodes=draw(st.booleans()))
        )
    model = ClusterModel("drawn", tuple(nodes), tuple(parts), **draw(disturbances(names)))
    return draw(limited(model)) if draw(st.booleans()) else model


some = st.dictionaries(
    st.sampled_from(["cpu", "gres/gpu", "gres/gpu:a100", "mem", "node"]), st.integers(0, 6), max_size=2
)
above_limits = st.builds(LimitSet, grp_tres=some, grp_jobs=st.sampled_from([None, 2, 3]))
user_limits = st.builds(
    LimitSet, grp_tres=some, max_tres_per_job=some, max_tres_per_node=some, grp_jobs=st.sampled_from([None, 2]),
    max_jobs_per_user=st.sampled_from([None, 1, 2]), max_wall_s=st.sampled_from([None, 40]),
)  # fmt: skip
qos_limits = st.builds(
    LimitSet, grp_tres=some, max_tres_per_job=some, max_tres_per_node=some, max_tres_per_user=some,
    grp_jobs=st.sampled_from([None, 1, 3]), max_jobs_per_user=st.sampled_from([None, 1]),
    max_wall_s=st.sampled_from([None, 40]),
)  # fmt: skip


@st.composite
def limited(draw: st.DrawFn, model: ClusterModel) -> ClusterModel:
    """Draw limits of QOS, of which partitions may have one, and of associations."""
    known = {qos.name: qos for qos in model.qos} or {"low": Qos("low"), "high": Qos("high")}
    parts = [replace(part, qos=draw(st.sampled_from(["", "", "low", "high"]))) for part in model.partitions]
    flags = st.sampled_from([frozenset[str](), frozenset({"OverPartQOS"})])
    return replace(
        model,
        partitions=tuple(parts),
        qos=tuple(
            replace(qos, limits=draw(qos_limits | st.just(LimitSet())), flags=draw(flags)) for qos in known.values()
        ),
        associations=(
            Association("root", parent="", limits=draw(above_limits | st.just(LimitSet()))),
            *(Association("root", user, limits=draw(user_limits | st.just(LimitSet()))) for user in ("u0", "u1")),
        ),
    )


@st.composite
def disturbances(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    """Draw reservations, outages and preemption."""
    found: dict[str, Any] = {}
    if draw(st.booleans()):
        some = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        begin = draw(st.integers(0, 60))
        users = frozenset(draw(st.sampled_from([(), ("u0",)])))
        found["reservations"] = (Reservation("r", tuple(some), begin, begin + draw(st.integers(1, 60)), users),)
    if draw(st.booleans()):
        begin = draw(st.integers(1, 60))
        found["outages"] = (Outage(draw(st.sampled_from(names)), begin, begin + draw(st.integers(1, 60))),)
    kind = draw(st.sampled_from(["", "", "preempt/partition_prio", "preempt/qos"]))
    if kind:
        mode = draw(st.sampled_from(["REQUEUE", "CANCEL"]))
        found["settings"] = {"PreemptType": kind, "PreemptMode": mode}
        found["qos"] = (Qos("low"), Qos("high", priority=10, preempts=frozenset({"low"})))
    return found


@st.composite
def plays(draw: st.DrawFn) -> tuple[ClusterModel, list[Job], Settings]:
    """Draw a cluster, jobs that fit it, and settings."""
    model = draw(clusters())
    jobs = []
    for _ in range(draw(st.integers(1, 14))):
        part = draw(st.sampled_from(model.partitions))
        near = draw(st.sampled_from([node for node in model.nodes if node.name in part.nodes]))
        kind = draw(st.sampled_from([None, *near.gpus]))
        most = near.gpu_count if kind is None else near.gpus[kind]
        cpus, memory = draw(st.integers(1, near.cpus)), draw(st.integers(0, near.memory_b))
        gpus = draw(st.integers(0, most))
        fit = [
            node
            for node in model.nodes
            if node.name in part.nodes
            and node.cpus >= cpus
            and node.memory_b >= memory
            and (node.gpu_count if kind is None else node.gpus.get(kind, 0)) >= gpus
        ]
        run = draw(st.integers(1, 40))
        limit = run + draw(st.integers(0, 40))
        jobs.append(
            Job(
                *(draw(st.integers(0, 60)), run, limit, part.name, draw(st.integers(1, len(fit)))),
                *(cpus, memory, gpus),
                gpu_type=kind,
                believed=draw(st.sampled_from([limit, max(1, limit // 2)])),
                user=draw(st.sampled_from(["u0", "u1"])),
                qos=draw(st.sampled_from(["", "low", "high"])),
                priority=draw(st.integers(0, 2)),
            )
        )
    settings = Settings(
        interval=draw(st.integers(1, 20)),
        window=60 * draw(st.sampled_from([1, 2, 1440])),
        resolution=draw(st.integers(1, 20)),
        max_tests=draw(st.sampled_from([1, 3, 500])),
        max_of_user=draw(st.sampled_from([0, 0, 1, 2])),
        max_starts=draw(st.sampled_from([0, 0, 1])),
        depth=draw(st.sampled_from([1, 3, 100])),
        full_interval=draw(st.integers(5, 60)),
        delay=draw(st.integers(0, 5)),
        defer=draw(st.booleans()),
    )
    return model, sorted(jobs, key=lambda job: job.submit), settings


@given(drawn=plays())
def test_each_start_is_the_plain_models(drawn: tuple[ClusterModel, list[Job], Settings]) -> None:
    """On drawn clusters with preemption, limits, reservations and outages, each job runs as in the plain model."""
    found = compiled(*drawn)
    assert found == plain(*drawn)


def job(submit: int, run: int, limit: int, nodes: int = 1, **known: Any) -> Job:
    """Return a job of partition `batch`."""
    return Job(submit, run, limit, known.pop("partition", "batch"), nodes, believed=limit, **known)


def cluster(count: int = 4, *parts: Partition, **known: Any) -> ClusterModel:
    """Return equal nodes of 4 CPUs and 2 GPUs, in one partition unless others are given."""
    nodes = tuple(Node(f"n{k}", 4, 64, {"a100": 2}) for k in range(count))
    batch = (Partition("batch", tuple(node.name for node in nodes)),)
    return ClusterModel("fixed", nodes, parts or batch, **known)


def starts(model: ClusterModel, *jobs: Job, **known: Any) -> list[int]:
    """Return the starts by the compiled model, which are those of the plain one."""
    found = compiled(model, list(jobs), Settings(**known))
    assert found == plain(model, list(jobs), Settings(**known))
    return [start for start, _ in found]


def test_a_blocked_job_holds_up_its_partition_and_its_nodes_until_backfill() -> None:
    """A small job behind a blocked one starts in a cycle of backfill, one of a partition with other nodes at once."""
    parts = (Partition("batch", ("n0", "n1")), Partition("other", ("n2",)), Partition("shared", ("n1", "n2")))
    jobs = [
        job(0, 100, 100, cpus=4),
        job(10, 10, 10, nodes=2, cpus=4),
        job(11, 20, 20),
        job(12, 20, 20, partition="other"),
        job(13, 20, 20, partition="shared", cpus=4),
    ]
    # Passes are at 0, 10 and 13, cycles at 0 and 30. The job of `shared` may not have n1, and n2 is free from 33 on.
    assert starts(cluster(3, *parts), *jobs, resolution=1) == [0, 100, 30, 13, 33]


def test_a_submission_waits_for_the_next_pass_and_an_end_does_not() -> None:
    """A job is tried batch_sched_delay after the last pass, not as it is submitted; an end is followed by a pass."""
    jobs = [job(0, 11, 90, cpus=4), job(1, 50, 50), job(2, 50, 50, nodes=1, cpus=4)]
    assert starts(cluster(2), *jobs, delay=5, interval=100) == [0, 5, 11]


def test_with_defer_an_end_waits_for_the_next_pass_too() -> None:
    """With defer, the pass after an end comes batch_sched_delay after the last one."""
    jobs = [job(0, 6, 90, cpus=4), job(4, 50, 50), job(5, 50, 50, cpus=4)]
    assert starts(cluster(1), *jobs, delay=4, interval=100, defer=True)[1] == 8


def test_reserved_nodes_are_whole_nodes() -> None:
    """A job of one CPU does not start beside a GPU job on a node that a third one has reserved."""
    model = cluster(1)
    jobs = [job(0, 50, 50, gpus=2), job(1, 50, 50, gpus=1), job(2, 200, 200, cpus=1)]
    assert starts(model, *jobs) == [0, 50, 50]


def test_a_short_job_starts_before_the_reservation() -> None:
    """Backfill starts what ends before the nodes are reserved from, floored to bf_resolution."""
    jobs = [job(0, 90, 90, nodes=3, cpus=4), job(1, 50, 50, nodes=4, cpus=4), job(2, 30, 30), job(3, 20, 61)]
    found = starts(cluster(), *jobs, interval=10)
    assert found[1:] == [90, 10, 140]


def test_a_higher_tier_goes_first() -> None:
    """Of two waiting jobs the one of the higher PriorityTier starts first, though it was submitted later."""
    parts = (Partition("batch", ("n0",)), Partition("first", ("n0",), priority_tier=5))
    jobs = [job(0, 50, 50, cpus=4), job(1, 10, 10, cpus=4), job(2, 10, 10, cpus=4, partition="first")]
    assert starts(cluster(1, *parts), *jobs) == [0, 60, 50]


@pytest.mark.parametrize(("mode", "expected"), [("REQUEUE", [(20, 100), (5, 15)]), ("CANCEL", [(0, 5), (5, 15)])])
def test_preemption_by_partition(mode: str, expected: list[tuple[int, int]]) -> None:
    """A job of a higher tier ends the run of a lower one, which starts anew with REQUEUE."""
    parts = (Partition("batch", ("n0",)), Partition("first", ("n0",), priority_tier=5))
    settings = {"PreemptType": "preempt/partition_prio", "PreemptMode": mode}
    jobs = [job(0, 100, 100, cpus=4), job(5, 15, 15, cpus=4, partition="first")]
    assert compiled(cluster(1, *parts, settings=settings), jobs, Settings()) == expected


def test_maintenance_holds_back_jobs_that_would_not_end_before_it() -> None:
    """A job starts before a reservation only if its limit ends first; others wait for its end."""
    model = cluster(1, reservations=(Reservation("maintenance", ("n0",), 100, 200),))
    assert starts(model, job(0, 10, 100), job(1, 10, 100)) == [0, 200]


def test_gpus_are_placed_by_type() -> None:
    """A job that asks for a type waits for a node that has it, though GPUs of another type are free."""
    nodes = (Node("a", 8, 64, {"a100": 2}), Node("h", 8, 64, {"h100": 1}))
    model = ClusterModel("types", nodes, (Partition("batch", ("a", "h")),))
    jobs = [job(0, 40, 40, gpus=1, gpu_type="h100"), job(1, 10, 10, gpus=1, gpu_type="h100"), job(2, 10, 10, gpus=1)]
    assert starts(model, *jobs, interval=5)[:2] == [0, 40]


def test_fair_share_puts_the_user_first_who_used_less() -> None:
    """With Fair Tree, the job of a user without usage overtakes those of one who has used the node."""
    settings = {"PriorityType": "priority/multifactor", "PriorityWeightFairshare": "1000", "PriorityCalcPeriod": "1"}
    model = cluster(1, settings=settings)
    jobs = [job(0, 100, 100, cpus=4, user="heavy"), job(1, 50, 50, cpus=4, user="heavy"), job(2, 50, 50, cpus=4)]
    assert [start for start, _ in compiled(model, jobs, Settings())] == [0, 150, 100]


def test_a_job_over_a_limit_waits_and_blocks_nobody() -> None:
    """The second job of a user with MaxJobs 1 waits for the first, the one behind it starts at once."""
    users = (Association("root", parent=""), Association("root", "ann", limits=LimitSet(max_jobs_per_user=1)))
    model = cluster(2, associations=users)
    jobs = [job(0, 50, 50, user="ann"), job(1, 50, 50, user="ann", nodes=2, cpus=4), job(2, 10, 10)]
    assert starts(model, *jobs, interval=5) == [0, 50, 3]


def test_a_limit_that_is_never_met_holds_a_job_for_ever() -> None:
    """A job of two nodes in a QOS of one node never starts, and all others do."""
    model = cluster(2, qos=(Qos("small", limits=LimitSet(max_tres_per_job={"node": 1})),))
    assert starts(model, job(0, 5, 5, nodes=2, qos="small"), job(1, 5, 5, qos="small")) == [-1, 3]


def test_jobs_go_to_the_smallest_gap_that_is_large_enough() -> None:
    """Of neighbours that are free, a job takes the set with the fewest free CPUs that has enough nodes for it."""
    jobs = [
        job(0, 60, 60, cpus=4),
        *(job(0, 20, 60, cpus=4) for _ in range(2)),
        job(0, 60, 60, cpus=4),
        job(0, 20, 60, cpus=4),
        job(0, 60, 60, cpus=4),
        # Nodes 1, 2 and 4 are free from 20 on: the first job takes 4, and 1 and 2 are left for the second.
        job(20, 20, 60, cpus=4),
        job(21, 20, 60, nodes=2, cpus=4),
    ]
    assert starts(cluster(6), *jobs, interval=100)[6:] == [20, 23]


def test_a_job_starts_at_the_passes_that_are_given() -> None:
    """With the instants of passes given, a job starts at the first one that may start it, whatever the settings say."""
    jobs = [job(0, 10, 10, cpus=4), job(1, 10, 10, cpus=4), job(2, 5, 5)]
    passes = np.array([(4, b.MAIN), (17, b.CYCLE), (31, b.FULL)], np.int64)
    found = compiled(cluster(1), jobs, Settings(delay=0, interval=1), passes)
    assert [start for start, _ in found] == [4, 17, 31]

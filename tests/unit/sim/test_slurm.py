"""The compiled model of Slurm's scheduler against a plain one, job by job, and each rule in a case of its own."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sim.slurm_reference import Job, Settings, Slurm

from gpuwaste.history.table import Categories
from gpuwaste.sim.cluster import ClusterModel, Node, Outage, Partition, Qos, Reservation
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.nodes import layout
from gpuwaste.sim.slurm.play import play
from gpuwaste.sim.slurm.requests import Requests
from gpuwaste.sim.slurm.setup import new_board

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


def compiled(model: ClusterModel, jobs: list[Job], settings: Settings) -> list[tuple[int, int]]:
    """Return start and run of each job by the compiled model."""
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
    play(board, laid.events, False)  # noqa: FBT003 compiled code takes no names
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
        size = {"cpus": draw(st.integers(1, 4)), "memory_b": draw(st.integers(1, 4)), "gpus": gpus}
        nodes.append(Node(f"n{k}", weight=draw(st.integers(1, 2)), **size))
    names = [node.name for node in nodes]
    parts = []
    for k in range(draw(st.integers(1, 3))):
        own = names if k == 0 else draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        parts.append(Partition(f"p{k}", tuple(own), priority_tier=draw(st.integers(1, 2)), whole_nodes=draw(st.booleans())))
    return ClusterModel("drawn", tuple(nodes), tuple(parts), **draw(disturbances(names)))


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
        asked = {
            "cpus": draw(st.integers(1, near.cpus)),
            "memory": draw(st.integers(0, near.memory_b)),
            "gpus": draw(st.integers(0, most)),
        }
        fit = [
            node
            for node in model.nodes
            if node.name in part.nodes
            and node.cpus >= asked["cpus"]
            and node.memory_b >= asked["memory"]
            and (node.gpu_count if kind is None else node.gpus.get(kind, 0)) >= asked["gpus"]
        ]
        run = draw(st.integers(1, 40))
        limit = run + draw(st.integers(0, 40))
        jobs.append(
            Job(
                *(draw(st.integers(0, 60)), run, limit, part.name, draw(st.integers(1, len(fit)))),
                **asked,
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
    """On drawn clusters, with preemption, reservations and outages, each job starts and runs as in the plain model."""
    found = compiled(*drawn)
    assert found == plain(*drawn)

"""The drawn jobs of the pictures: three weeks of six users, and what a cluster of 64 nodes runs now."""

import random
from http import HTTPStatus
from typing import Any, Final

from tests.integration.hub.rig import Rig

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record

NOW: Final = HOUR + 20 * DAY_S
SHOWN_JOB: Final = 4001
"""A job of four GPUs of which one worked."""
NODES: Final = tuple(
    Node(f"gpu{number}", address=f"10.0.0.{number}", state="MIXED", gpus={"a100": 8}) for number in range(1, 65)
)
_GPUS: Final = 8  # of a node
_SILENT: Final = {23, 24, 50}
_FREE: Final = {9, 31, 47, 62}
_REPORTED_S: Final = 60  # before now
_USERS: Final = (  # user, account, job name, GPUs of a job, GPUs that work, jobs
    ("alice", "vision", "train", 4, 1, 9),
    ("alice", "vision", "evaluate", 1, 1, 6),
    ("bob", "language", "finetune", 8, 8, 6),
    ("carol", "physics", "sweep", 2, 1, 10),
    ("dave", "physics", "notebook", 1, 0, 8),
    ("erin", "language", "tokenize", 2, 2, 7),
    ("frank", "chemistry", "dynamics", 4, 3, 5),
)
_RUNNING: Final = (  # user, account, job name, GPUs that work of eight, how often drawn
    ("bob", "language", "finetune", 8, 12),
    ("erin", "language", "tokenize", 7, 4),
    ("frank", "chemistry", "dynamics", 6, 4),
    ("carol", "physics", "sweep", 4, 2),
    ("dave", "physics", "notebook", 0, 1),
)


def store_ended(rig: Rig) -> None:
    """Store the jobs that ended; the same at each call."""
    drawn, number = random.Random(1), SHOWN_JOB - 1  # noqa: S311 pictures, not secrets
    for user, account, name, gpus, busy, jobs in _USERS:
        for place in range(jobs):
            number += 1
            start = NOW - HOUR_S * (10 + place * 16 + drawn.randrange(12))
            hours = drawn.randrange(2, 8)
            upsert_jobs(rig.store, [
                record(
                    number, user, account, submit=start - 600, start=start, end=start + hours * HOUR_S,
                    elapsed_s=hours * HOUR_S, gpus=gpus, gpu_type="a100", cpus=8 * gpus, name=name,
                    alloc_tres=f"cpu={8 * gpus},gres/gpu={gpus}", time_limit_s=DAY_S,
                    submit_line=f"sbatch --gres=gpu:a100:{gpus} {name}.sh", interactive=name == "notebook",
                )
            ])  # fmt: skip
            rows = [
                _row(
                    number, start, gpu, start + at * HOUR_S, HOUR_S, use=40 + 50 * (gpu + at) % 60 if gpu < busy else 0
                )
                for gpu in range(gpus)
                for at in range(hours)
            ]
            _send(rig, rows)


def store_running(rig: Rig) -> None:
    """Store what runs now, one job a node; some nodes are free, some do not report."""
    rig.hub.get(ClusterFacts).refresh()
    drawn = random.Random(2)  # noqa: S311 pictures, not secrets
    begin = NOW // HOUR_S * HOUR_S - HOUR_S
    for number, node in enumerate(NODES, start=1):
        if number in _FREE:
            continue
        user, account, name, busy, _ = drawn.choices(_RUNNING, [row[-1] for row in _RUNNING])[0]
        job, start = 5000 + number, begin - HOUR_S * drawn.randrange(1, 6)
        upsert_jobs(rig.store, [
            record(
                job, user, account, submit=start - 600, start=start, end=None, elapsed_s=None, state="RUNNING",
                exit_code=None, gpus=_GPUS, gpu_type="a100", cpus=64, name=name, nodes=node.name,
                alloc_tres=f"cpu=64,gres/gpu={_GPUS}", time_limit_s=DAY_S,
            )
        ])  # fmt: skip
        if number in _SILENT:
            continue
        rows = [
            _row(job, start, gpu, at, min(HOUR_S, NOW - _REPORTED_S - at), final=False, node=node.name,
                 use=drawn.choice((20, 50, 75, 90, 95)) if gpu < busy else 0)
            for gpu in range(_GPUS)
            for at in range(start, NOW - _REPORTED_S, HOUR_S)
        ]  # fmt: skip
        _send(rig, rows, node)


def _row(job: int, start: int, gpu: int, begin: int, span_s: int, *, use: int, **more: Any) -> AllocationHour:
    span_ms, idle = span_s * 1000, use == 0
    values: dict[str, Any] = {
        "run_key": RunKey("gw", job, start), "gpu_uuid": f"GPU-{job}-{gpu}", "hour_utc": begin, "t0_ms": begin * 1000,
        "t1_ms": begin * 1000 + span_ms, "util_ms": {use: span_ms}, "idle_run_ms": span_ms if idle else 0,
        "last_active_ms": None if idle else begin * 1000 + span_ms, "proc_seen": not idle,
        "mem_max_b": 0 if idle else 30 << 30, "mem_total_b": 80 << 30, "final": True,
    }  # fmt: skip
    return hour(job, **{**values, **more})


def _send(rig: Rig, rows: list[AllocationHour], node: Node = NODES[0]) -> None:
    answer = rig.post(batch(*rows, node=node.name), origin=node.address)
    if answer.status != HTTPStatus.OK or answer.json["rejected"]:
        raise RuntimeError(answer.body)

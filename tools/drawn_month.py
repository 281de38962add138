"""June 2025 of a small cluster, drawn so that GPUs are lost in each way that the balance knows: for pages."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final, NamedTuple

from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.machine import machine_store
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.accounting.job_record import AccountedRun, JobDetails
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.slurm.site.machine_events import NodeOutage, ReservedNodes
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.hub_rows import hour, record

START: Final = 1_748_736_000  # 2025-06-01T00:00:00Z
END: Final = START + 30 * 24 * HOUR_S
_GIB: Final = 1 << 30
NODES: Final = tuple(
    Node(f"gpu{number}", 64, 512 * _GIB, {kind: 4}, partitions=("gpu",), address=f"10.0.0.{number}", state="MIXED")
    for number, kind in ((1, "a100"), (2, "a100"), (3, "a100"), (4, "v100"))
)


class _Job(NamedTuple):
    """A job of the month: times are hours from its begin, `busy` of its GPUs work."""

    user: str
    account: str
    name: str
    nodes: str
    gpus: int
    busy: int
    cpus: int
    gib: int
    submit: float
    start: float
    end: float
    reason: str = "None"
    used_gib: int = 8


def _jobs() -> Iterator[_Job]:
    for begin, end in ((0, 130), (130.02, 250), (250.02, 336), (344, 470), (470.02, 639.99)):
        yield _Job("bob", "language", "finetune", "gpu1", 4, 4, 32, 300, max(0, begin - 40), begin, end)
    yield _Job("erin", "biology", "assemble", "gpu2", 1, 1, 8, 480, 0, 0, 160, used_gib=60)
    yield _Job("erin", "biology", "assemble", "gpu2", 1, 1, 8, 480, 150, 160, 300, used_gib=60)
    yield _Job("dave", "chemistry", "dock", "gpu3", 1, 1, 60, 64, 330, 344, 480)
    yield _Job("frank", "physics", "dynamics", "gpu3", 3, 1, 24, 96, 0, 0, 180)
    yield _Job("frank", "physics", "dynamics", "gpu3", 3, 1, 24, 96, 100, 181, 330)
    yield _Job("alice", "vision", "notebook", "gpu3", 1, 0, 4, 32, 0, 2, 320)
    for place in range(4):  # memory keeps them from gpu2, later CPUs keep them from gpu3
        yield _Job("carol", "vision", "sweep", "gpu2", 1, 1, 8, 64, 40 + place * 30, 300.01, 330 + place)
        yield _Job("carol", "vision", "sweep", "gpu2", 1, 1, 8, 64, 380 + place * 9, 430.01, 500 + place * 20)
    yield _Job("carol", "vision", "train", "gpu2", 4, 4, 32, 256, 340, 344, 430)
    for place in range(2):
        yield _Job("alice", "vision", "evaluate", "gpu3", 1, 1, 8, 64, 490, 520 + place, 575, "QOSMaxGRESPerUser")
    yield _Job("bob", "language", "pretrain", "gpu[1-3]", 12, 12, 96, 900, 560, 640, 716)
    yield _Job("grace", "physics", "legacy", "gpu4", 2, 2, 16, 64, 0, 0, 260)
    yield _Job("grace", "physics", "legacy", "gpu4", 2, 2, 16, 64, 300, 392, 640)


def store_month(store: HubStore) -> None:
    """Store machine, jobs and what agents reported of them."""
    with store.writing() as db:
        machine_store.write_nodes(db, "gw", NODES, START)
        down = NodeOutage("gpu4", START + 340 * HOUR_S, START + 392 * HOUR_S, "DOWN*")
        machine_store.replace_outages(db, "gw", [down], START)
        upkeep = ReservedNodes("upkeep", START + 336 * HOUR_S, START + 344 * HOUR_S, "gpu[1-4]", "MAINT")
        machine_store.replace_reservations(db, "gw", [upkeep], START)
        machine_store.set_complete(db, "machine_events", "gw", START, END)
        machine_store.set_complete(db, "machine_reservations", "gw", START, END)
    jobs = [(job, _record(8001 + place, job)) for place, job in enumerate(_jobs())]
    upsert_jobs(store, [run for _, run in jobs])
    upsert_hours(store, [row for job, run in jobs for row in _hours(job, run)])


def _record(number: int, job: _Job) -> AccountedRun:
    times = {name: START + round(getattr(job, name) * HOUR_S) for name in ("submit", "start", "end")}
    nodes = _nodes(job)
    tres = f"cpu={job.cpus},mem={job.gib}G,node={len(nodes)},gres/gpu={job.gpus}"
    kind = "v100" if nodes == ["gpu4"] else "a100"
    run = record(
        number, job.user, job.account, **times, elapsed_s=times["end"] - times["start"], name=job.name,
        nodes=job.nodes, n_nodes=len(nodes), gpus=job.gpus, gpu_type=kind, cpus=job.cpus, time_limit_s=7 * 24 * HOUR_S,
        req_tres=f"{tres},gres/gpu:{kind}={job.gpus}", alloc_tres=tres, max_rss_b=job.used_gib * _GIB,
        total_cpu_s=(times["end"] - times["start"]) * job.gpus, interactive=job.name == "notebook",
        submit_line=f"sbatch --gres=gpu:{kind}:{job.gpus // len(nodes)} --mem={job.gib}G {job.name}.sh",
    )  # fmt: skip
    return AccountedRun(**asdict(run), details=JobDetails(eligible=times["submit"], reason=job.reason))


def _nodes(job: _Job) -> list[str]:
    return ["gpu1", "gpu2", "gpu3"] if job.nodes == "gpu[1-3]" else [job.nodes]


def _hours(job: _Job, run: AccountedRun) -> Iterator[AllocationHour]:
    """Yield what the agents send of a run: utilization changes from hour to hour."""
    names = _nodes(job)
    each, start, end = job.gpus // len(names), run.start or 0, run.end or 0
    for gpu in range(job.gpus):
        for begin in range(start // HOUR_S * HOUR_S, end, HOUR_S):
            since, until = max(begin, start), min(begin + HOUR_S, end)
            span_ms = (until - since) * 1000
            use = (20, 55, 75, 90, 95)[(begin // HOUR_S + gpu) % 5] if gpu < job.busy else 0
            yield hour(
                run.job_id, run_key=RunKey("gw", run.job_id, start), node=names[gpu // each],
                gpu_uuid=f"GPU-{run.job_id}-{gpu}", hour_utc=begin, t0_ms=since * 1000, t1_ms=until * 1000,
                util_ms={use: span_ms}, idle_run_ms=0 if use else span_ms, proc_seen=bool(use), final=True,
                mem_max_b=30 * _GIB if use else 0, mem_total_b=80 * _GIB,
            )  # fmt: skip

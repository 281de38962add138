"""Rows of a report's tables: runs one by one, the tasks of an array in one line; users; findings."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuwaste.core.finding import Finding
from gpuwaste.waste.ledger import JobLedger
from gpuwaste.waste.tally import Tally, seconds, under_used_json


@dataclass(frozen=True, slots=True)
class Line:
    """What one row of the job table stands for: a run, or the tasks of an array."""

    tasks: list[JobLedger]
    printed_id: str
    requeued: bool


def job_lines(jobs: Iterable[JobLedger]) -> list[Line]:
    """Return a line for each run, array tasks rolled up, the largest waste first.

    A run that was requeued stays a line of its own: it is another run of the same job.
    """
    ordered = sorted(jobs, key=lambda j: j.begin_ms)
    newest = {(ledger.job.cluster, ledger.job.job_id): ledger for ledger in ordered}
    lines = []
    arrays: dict[tuple[str, int], list[JobLedger]] = {}
    for ledger in ordered:
        job = ledger.job
        requeued = newest[job.cluster, job.job_id] is not ledger or job.state == "REQUEUED"
        if job.array_job_id is not None and not requeued:
            arrays.setdefault((job.cluster, job.array_job_id), []).append(ledger)
        else:
            lines.append(Line([ledger], job.printed_id, requeued))
    for (_, array_id), tasks in arrays.items():
        ids = [t.job.array_task_id or 0 for t in tasks]
        printed = tasks[0].job.printed_id if len(tasks) == 1 else f"{array_id}_[{min(ids)}-{max(ids)}]"
        lines.append(Line(tasks, printed, requeued=False))
    return sorted(lines, key=line_order)


def line_order(line: Line) -> tuple[int, int, str, str]:
    """Return what lines are sorted by: the largest waste first."""
    wasted, held = sum(t.wasted_ms for t in line.tasks), sum(t.alloc_ms for t in line.tasks)
    return -wasted, -held, line.tasks[0].job.cluster, line.printed_id


def job_row(line: Line) -> dict[str, Any]:
    """Return one row of the job table."""
    tasks = line.tasks
    first = tasks[0].job
    states = Counter(t.job.state for t in tasks)
    ends = [t.job.end for t in tasks]
    tally = Tally.of(d for t in tasks for d in t.devices)
    return {
        "cluster": first.cluster,
        "jobid": line.printed_id,
        "name": first.name,
        "user": first.user,
        "account": first.account,
        "partition": first.partition,
        "state": first.state if len(states) == 1 else "MIXED",
        "states": dict(sorted(states.items())),
        "tasks": len(tasks),
        "requeued": line.requeued,
        "running": any(t.running for t in tasks),
        "start": min(t.job.start or 0 for t in tasks),
        "end": None if None in ends else max(e for e in ends if e is not None),
        "gpus": sum(len(t.devices) if t.job.gpus is None else t.job.gpus for t in tasks),
        "gpu_type": first.gpu_type,
        "under_used_devices": sum(d.under_used is True for t in tasks for d in t.devices),
        "shared_gpu_s": seconds(sum(d.alloc_ms for t in tasks for d in t.shared)),
        "cpu_efficiency": cpu_efficiency(tasks),
        "memory_efficiency": memory_efficiency(tasks),
        **tally.to_json(),
    }


def by_user(jobs: Iterable[JobLedger]) -> dict[str, list[JobLedger]]:
    """Return the runs of each user, in the order in which they come."""
    of_user: dict[str, list[JobLedger]] = {}
    for ledger in jobs:
        of_user.setdefault(ledger.job.user, []).append(ledger)
    return of_user


def user_rows(jobs: Iterable[JobLedger]) -> list[dict[str, Any]]:
    """Return the sums of each user, the largest waste first."""
    rows = [
        {
            "user": user,
            "accounts": sorted({j.job.account for j in theirs}),
            "jobs": len(theirs),
            "running": sum(j.running for j in theirs),
            "under_used": under_used_json(theirs),
            **Tally.of(d for j in theirs for d in j.devices).to_json(),
        }
        for user, theirs in by_user(jobs).items()
    ]
    return sorted(rows, key=user_order)


def user_order(row: Mapping[str, Any]) -> tuple[float, float, str]:
    """Return what rows of users are sorted by: the largest waste first."""
    return -row["wasted_s"], -row["gpu_s"], row["user"]


def findings_json(findings: Iterable[Finding], jobs: Iterable[JobLedger]) -> list[dict[str, Any]]:
    """Return findings with the ids that Slurm prints beside the raw ones."""
    documents = [finding.to_json() for finding in findings]
    printed = {(j.job.cluster, j.job.job_id): j.job.printed_id for j in jobs} if documents else {}
    for document in documents:
        for run in document["runs"]:
            run["printed_id"] = printed.get((run["cluster"], run["jobid"]), str(run["jobid"]))
    return documents


def cpu_efficiency(tasks: Sequence[JobLedger]) -> float | None:
    """Return the CPU time used over the CPU time allocated, 0..1 and over; None where accounting lacks either.

    While a job runs accounting has no CPU time, so that of the nodes is taken, where they report it.
    """
    used = allocated = 0.0
    for ledger in tasks:
        job = ledger.job
        if job.cpus and job.total_cpu_s is not None and ledger.ran_ms and not ledger.running:
            used += job.total_cpu_s
            allocated += job.cpus * ledger.ran_ms / 1000
        elif (ratio := node_cpu_ratio(ledger)) is not None:
            used += ratio * (job.cpus or 1) * ledger.ran_ms / 1000
            allocated += (job.cpus or 1) * ledger.ran_ms / 1000
    return round(used / allocated, 4) if allocated else None


def node_cpu_ratio(ledger: JobLedger) -> float | None:
    """Return the CPU time on the GPU nodes over the CPUs there, while the agents watched; None if they did not."""
    job = ledger.job
    if not job.cpus:
        return None
    nodes: dict[str, tuple[float, int]] = {}
    for device in (*ledger.devices, *ledger.shared):
        if device.use.cpu_s is not None and device.use.cpu_known_ms:
            best = nodes.get(device.use.node, (0.0, 0))
            nodes[device.use.node] = max(best, (device.use.cpu_s, device.use.cpu_known_ms), key=lambda v: v[1])
    watched_s = sum(ms for _, ms in nodes.values()) / 1000
    if not watched_s:
        return None
    return sum(cpu for cpu, _ in nodes.values()) / (watched_s * job.cpus / max(1, job.n_nodes or 1))


def memory_efficiency(tasks: Sequence[JobLedger]) -> float | None:
    """Return the largest share of the requested host memory that a task used, 0..1; None where it is not known."""
    ratios = [
        used / t.job.mem_req_b
        for t in tasks
        if t.job.mem_req_b and (used := t.job.max_rss_b if t.job.max_rss_b is not None else _seen_memory(t)) is not None
    ]
    return round(max(ratios), 4) if ratios else None


def _seen_memory(ledger: JobLedger) -> int | None:
    """Return the agents' peak of the job's host memory, added over its nodes; None where they have none."""
    nodes: dict[str, int] = {}
    for device in (*ledger.devices, *ledger.shared):
        if device.use.host_mem_max_b is not None:
            nodes[device.use.node] = max(nodes.get(device.use.node, 0), device.use.host_mem_max_b)
    return sum(nodes.values()) if nodes else None

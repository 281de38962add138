"""What a run did with its CPUs and its host memory, from accounting, and from the nodes where that lacks it."""

from gpuwaste.waste.ledger import JobLedger


def cpu_efficiency(ledger: JobLedger) -> float | None:
    """Return the CPU time used over the CPU time allocated, 0..1 and over; None where it is not known."""
    return ratio(*cpu_seconds(ledger))


def ratio(used_s: float | None, held_s: float | None) -> float | None:
    """Return used over held as documents carry it."""
    return round((used_s or 0.0) / held_s, 4) if held_s else None


def cpu_seconds(ledger: JobLedger) -> tuple[float | None, float | None]:
    """Return the CPU time that a run used, and what it held; None where accounting and nodes lack it.

    While a job runs accounting has no CPU time, so that of the nodes is taken, where they report it.
    """
    job = ledger.job
    held_s = (job.cpus or 1) * ledger.ran_ms / 1000
    if job.cpus and job.total_cpu_s is not None and ledger.ran_ms and not ledger.running:
        return job.total_cpu_s, held_s
    share = node_cpu_ratio(ledger)
    return (None, None) if share is None else (share * held_s, held_s)


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


def memory_ratio(ledger: JobLedger) -> float | None:
    """Return the share of the requested host memory that a run used, 0..1; None where it is not known."""
    job = ledger.job
    used = _seen_memory(ledger) if job.max_rss_b is None else job.max_rss_b
    return used / job.mem_req_b if job.mem_req_b and used is not None else None


def _seen_memory(ledger: JobLedger) -> int | None:
    """Return the agents' peak of the job's host memory, added over its nodes; None where they have none."""
    nodes: dict[str, int] = {}
    for device in (*ledger.devices, *ledger.shared):
        if device.use.host_mem_max_b is not None:
            nodes[device.use.node] = max(nodes.get(device.use.node, 0), device.use.host_mem_max_b)
    return sum(nodes.values()) if nodes else None

"""KeptGpus: a job that kept GPUs from jobs that waited, and what it used of its request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuwaste.jobs.machine.machine_reads import memory_of
from gpuwaste.ledger.finding import Finding, Fix
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.formats.hostlist import compressed


@dataclass(frozen=True, slots=True)
class KeptGpus:
    """An ended run, the nodes (a hostlist) and GPU-seconds that it kept, and its memory; None is not known."""

    job: JobRecord
    printed_id: str
    nodes: str
    gpu_s: int
    memory_b: int
    used_b: int | None

    @property
    def busy_cpus(self) -> float | None:
        """CPUs that it kept busy on average."""
        ran, used = self.job.elapsed_s, self.job.total_cpu_s
        return None if not ran or used is None else used / ran

    def finding(self, kind: str, title: str, evidence: dict[str, Any], fix: Fix) -> Finding:
        """Return a finding of this run."""
        evidence = {"kept_gpu_s": self.gpu_s, "gpus": self.job.gpus or 0, **evidence}
        return Finding(kind, title, (self.job.run_key,), evidence, (fix,), wasted_gpu_s=0.0)


def kept_gpus(row: Mapping[str, Any]) -> KeptGpus:
    """Return a row of query stranding_of."""
    names = (
        *("cluster", "job_id", "submit", "printed_id", "name", "user", "start", "end", "n_nodes", "cpus", "gpus"),
        *("gpu_type", "alloc_tres", "submit_line", "elapsed_s", "total_cpu_s", "partition"),
    )
    job = JobRecord(**{name: row[name] for name in names})
    return KeptGpus(
        job, row["printed_id"], compressed(row["on_nodes"]), row["gpu_s"], memory_of(row["alloc_tres"]), row["used_b"]
    )

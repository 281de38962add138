"""What a run requests and holds, by the columns of sacct that have counts, memory and TRES."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpuwaste.slurm.accounting.requested import allocated_tres, request_tres, total_b
from gpuwaste.slurm.accounting.sacct_row import SacctRow
from gpuwaste.slurm.accounting.tres_amounts import GpuCount, count_of_tres, held_gpus, memory_b, parse_tres

AMOUNT_COLUMNS: Final = (
    *("ReqTRES", "AllocTRES", "ReqMem", "NNodes", "AllocCPUS", "ReqCPUS", "ReqNodes", "ReqGRES", "AllocGRES"),
)
"""The columns that `run_amounts` reads."""


@dataclass(frozen=True, slots=True)
class RunAmounts:
    """Amounts of a run; None is "not known", memory in bytes."""

    req_tres: str
    alloc_tres: str
    n_nodes: int | None
    cpus: int | None
    gpus: int | None
    gpu_type: str
    mem_req_b: int | None


def run_amounts(job: SacctRow, *, started: bool) -> RunAmounts:
    """Return the amounts of a job's row. Raises ParseError naming the column that cannot be read."""
    allocated = allocated_tres(job.values)
    tres = job.read("AllocTRES", lambda _: parse_tres(allocated))
    n_nodes, cpus = _count(job, "NNodes", tres, "node"), _count(job, "AllocCPUS", tres, "cpu")
    asked = job.text("ReqTRES") or request_tres(job.values)
    gpus_asked = asked if job.text("ReqTRES") or "ReqGRES" in job.values else ""  # else it does not list GPUs
    gpus = job.read("AllocTRES", lambda _: held_gpus(tres, gpus_asked, started=started))
    if gpus is None and "AllocGRES" in job.values:
        gpus = GpuCount(0, {})
    return RunAmounts(
        req_tres=asked,
        alloc_tres=allocated,
        n_nodes=n_nodes,
        cpus=cpus,
        gpus=None if gpus is None else gpus.total,
        gpu_type="" if gpus is None else gpus.type,
        mem_req_b=job.read("ReqMem", lambda text: total_b(text, n_nodes, cpus)) or memory_b(tres),
    )


def _count(job: SacctRow, column: str, tres: Mapping[str, str], name: str) -> int | None:
    """Return the column where it is a number, else the allocation's count."""
    own = job.whole(column)
    return count_of_tres(tres, name) if own is None else own

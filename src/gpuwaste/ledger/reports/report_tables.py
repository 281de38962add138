"""The tables of reports for programs: jobs, users, accounts, clusters, days, and the GPUs of a job."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import to_builtins

from gpuwaste.core.fields import Table

_SUMS: Final = (
    "gpu_s", "idle_s", "low_s", "moderate_s", "high_s", "unknown_s", "suspended_s", "pending_s", "untouched_s",
    "idle_run_s", "wasted_s", "exempt_s", "coverage", "mean_util_pct",
)  # fmt: skip
_ENERGY: Final = ("energy_j", "energy_measured_s", "wasted_energy_j", "cpu_energy_j")
_JOB: Final = (
    "cluster", "jobid", "name", "user", "account", "partition", "state", "tasks", "requeued", "start", "end", "gpus",
    "gpu_type", *_SUMS, "under_used_devices", "cpu_efficiency", "memory_efficiency", *_ENERGY,
)  # fmt: skip
_COST: Final = ("kwh", "wasted_kwh", "currency", "cost", "wasted_cost", "co2e_kg", "wasted_co2e_kg")
_PRICED: Final = {
    "users": ("user", "accounts", "jobs", "running", *_SUMS, *_ENERGY, *_COST),
    "accounts": ("account", "users", "jobs", "running", *_SUMS, *_ENERGY, *_COST),
    "clusters": ("cluster", "jobs", "running", *_SUMS, *_ENERGY, *_COST),
    "days": (
        "day", "jobs", "gpu_s", "idle_s", "low_s", "moderate_s", "high_s", "pending_s", "wasted_s", *_ENERGY, *_COST
    ),
}  # fmt: skip
_DEVICE: Final = (
    "cluster", "jobid", "run_start", "run_end", "state", "node", "gpu_uuid", "share", "t0", "t1", *_SUMS, "level",
    "untouched", "under_used", "mem_max_b", "mem_total_b", "map_source", "confidence", "profiled_s",
    "sm_active", "tensor_active", "dram_active", "nvlink_b", "pcie_b", *_ENERGY, "gpu_type",
)  # fmt: skip


def report_table(document: Any, part: str) -> Table:
    """Return a table of a report by its name; the jobs if there is none of that name."""
    return (_PRICED[part], _priced(getattr(document, part))) if part in _PRICED else job_table(document)


def job_table(document: Any) -> Table:
    """Return the jobs of a report."""
    return _JOB, map(to_builtins, document.jobs)


def device_table(document: Any) -> Table:
    """Return the GPUs of the runs of a job."""
    return _DEVICE, _devices(document.runs)


def _priced(rows: Iterable[Any]) -> Iterable[Mapping[str, Any]]:
    """Yield rows with their energy in addition to the other cells."""
    for row in map(to_builtins, rows):
        names = {"accounts": ",".join(row["accounts"])} if "accounts" in row else {}
        yield {**(row["energy"] or {}), **row, **names}


def _devices(runs: Iterable[Any]) -> Iterable[Mapping[str, Any]]:
    for run in runs:
        of_run = {"cluster": run.cluster, "jobid": run.printed_id, "state": run.state, "gpu_type": run.gpu_type}
        of_run |= {"run_start": run.start, "run_end": run.end}
        yield from ({**of_run, **to_builtins(device)} for device in [*run.devices, *run.shared])

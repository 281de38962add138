"""The nodes and GPUs of a run as other tools name them, and which of their figures are known."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.reports.job_types import DeviceRow, RunRow
from gpuwaste.slurm.formats.hostlist import expand

_SHORT: Final = 12  # characters of a UUID: "GPU-" and 8 digits, which nvidia-smi takes as well


def hosts(run: RunRow) -> list[str]:
    """Return the nodes of a run, none where accounting's text is not a hostlist."""
    try:
        return expand(run.nodes)
    except ParseError:
        return []


def by_node(run: RunRow) -> Mapping[str, Sequence[DeviceRow]]:
    """Return the full GPUs of each node by UUID; shares of GPUs and GPUs that no agent reported are left out."""
    found: dict[str, list[DeviceRow]] = defaultdict(list)
    for device in run.devices:
        if device.node and device.gpu_uuid:
            found[device.node].append(device)
    return {node: sorted(found[node], key=lambda d: d.gpu_uuid or "") for node in sorted(found)}


def all_reported(run: RunRow) -> bool:
    """Return whether agents reported every GPU of the run."""
    return all(device.node and device.gpu_uuid for device in run.devices)


def mean_pct(device: DeviceRow, min_coverage: float) -> float | None:
    """Return a GPU's mean utilization, percent; None where too little of its time is known (CONTRACTS.md, "Ledger")."""
    known = device.coverage is not None and device.coverage >= min_coverage
    return device.mean_util_pct if known else None


def short_names(devices: Sequence[DeviceRow]) -> list[str]:
    """Return a name for each GPU of a node: the first part of its UUID if unique on the node, else all of it."""
    full = [device.gpu_uuid or "" for device in devices]
    short = [name[:_SHORT] for name in full]
    return short if len(set(short)) == len(short) else full

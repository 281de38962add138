"""jobstats: the text that jobstats keeps in AdminComment, `JS1:` and base64 of compressed JSON, one line per run.

The JSON has jobstats' figures by node. An unknown figure is left out, and jobstats then prints "unknown".
"""

import base64
import gzip
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gpuwaste.ledger.exports._run import all_reported, by_node, hosts, mean_pct, short_names
from gpuwaste.ledger.reports.job_types import DeviceRow, JobDocument, RunRow
from gpuwaste.slurm.accounting.jobstats_comment import PREFIX

TITLE: Final = "jobstats' JS1: text for AdminComment, after the job id"


def lines(runs: Sequence[RunRow], document: JobDocument) -> Iterator[str]:
    """Yield job id, a blank and the text of each run with known figures of its GPUs."""
    for run in runs:
        if text := admin_comment(run, document.thresholds.min_coverage):
            yield f"{run.printed_id} {text}"


def admin_comment(run: RunRow, min_coverage: float) -> str:
    """Return the text of one run, "" where its GPUs are unknown: jobstats would show a text as a result."""
    nodes = {node: _node(devices, min_coverage) for node, devices in by_node(run).items()}
    if not any(nodes.values()) or not all_reported(run):
        return ""
    _add_cpus(run, nodes)
    document = {"nodes": nodes, "total_time": run.elapsed_s, "gpus": run.gpus or 0}
    # Without a time in its header, equal figures give equal bytes.
    packed = gzip.compress(json.dumps(document, separators=(",", ":")).encode("ascii"), mtime=0)
    return PREFIX + base64.b64encode(packed).decode("ascii")


def _node(devices: Sequence[DeviceRow], min_coverage: float) -> dict[str, Any]:
    """Return the GPU figures of a node, each only if every GPU of the node has it."""
    names = short_names(devices)
    found: dict[str, Any] = {}
    means = [mean_pct(device, min_coverage) for device in devices]
    if None not in means:
        # 0 only where it is exactly 0, as jobstats has it from Prometheus: 0.0 is a mean that is rounded to it.
        found["gpu_utilization"] = dict(zip(names, [round(mean, 1) if mean else 0 for mean in means], strict=True))
    if all(device.mem_max_b is not None and device.mem_total_b is not None for device in devices):
        found["gpu_total_memory"] = {name: device.mem_total_b for name, device in zip(names, devices, strict=True)}
        found["gpu_used_memory"] = {name: device.mem_max_b for name, device in zip(names, devices, strict=True)}
    return found


def _add_cpus(run: RunRow, nodes: dict[str, dict[str, Any]]) -> None:
    """Add CPU time and memory of a run on a single node: accounting does not have them by node."""
    if len(hosts(run)) != 1 or run.cpus is None or run.elapsed_s is None or run.cpu_efficiency is None:
        return
    (node,) = nodes.values()
    node |= {"cpus": run.cpus, "total_time": round(run.cpu_efficiency * run.cpus * run.elapsed_s, 1)}
    if run.mem_req_b and run.memory_efficiency is not None:
        node |= {"total_memory": run.mem_req_b, "used_memory": round(run.memory_efficiency * run.mem_req_b)}

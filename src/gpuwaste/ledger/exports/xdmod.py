"""xdmod: Open XDMoD's job performance summary, one JSON document per line, as mongoimport reads it.

Figures that gpuwaste does not measure (network, disks, CPU counters) are left out: XDMoD then stores "not available".
"""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuwaste.core.version import own_version
from gpuwaste.ledger.exports._run import all_reported, by_node, hosts, mean_pct
from gpuwaste.ledger.reports.job_types import DeviceRow, JobDocument, RunRow

TITLE: Final = "Open XDMoD's job performance summary, JSON lines for mongoimport"


def lines(runs: Sequence[RunRow], document: JobDocument) -> Iterator[str]:
    """Yield the document of each run that has the values XDMoD requires: nodes, CPUs and times."""
    for run in runs:
        if found := summary(run, document.thresholds.min_coverage):
            yield json.dumps(found, separators=(",", ":"))


def summary(run: RunRow, min_coverage: float) -> dict[str, Any]:
    """Return the document of one run; empty without nodes, CPUs or times."""
    names = hosts(run)
    if not names or run.cpus is None or run.start is None or run.end is None:
        return {}
    places = _by_place(run)
    found: dict[str, Any] = {
        "_id": f"{run.job_id}-{run.end}",
        "acct": _accounted(run, names),
        "summarization": {
            "version": f"gpuwaste-{own_version()}",
            "complete": bool(run.devices) and all(_known(d, min_coverage) for d in run.devices),
            "datasource": "gpuwaste",
        },
    }
    if places:  # without GPUs XDMoD would divide by zero
        found["gpu"] = {name: _use(devices, min_coverage) for name, devices in places.items()}
        found["gpupower"] = {name: _energy(devices) for name, devices in places.items()}
    return found


def _accounted(run: RunRow, names: Sequence[str]) -> dict[str, Any]:
    found = {
        "id": str(run.job_id),
        "local_job_id": run.job_id,
        "user": run.user,
        "account": run.account,
        "jobname": run.name,
        "partition": run.partition,
        "qos": run.qos,
        "exit_status": run.state,
        "exit_code": None if run.exit_code is None else f"{run.exit_code}:{run.exit_signal or 0}",
        "ncpus": run.cpus,
        "nodes": len(names),
        "host_list": list(names),
        "gpus": run.gpus or 0,
        "submit": run.submit,
        "start_time": run.start,
        "end_time": run.end,
        "timelimit": run.time_limit_s,
    }
    return {name: value for name, value in found.items() if value is not None}


def _by_place(run: RunRow) -> Mapping[str, Sequence[DeviceRow]]:
    """Return gpu0, gpu1, ... with that GPU of each node, in order of UUID: XDMoD takes the mean over nodes.

    For GPUs that no agent reported an entry without figures is added: XDMoD then has no GPU figures for the run.
    """
    places: dict[str, list[DeviceRow]] = defaultdict(list)
    for devices in by_node(run).values():
        for place, device in enumerate(devices):
            places[f"gpu{place}"].append(device)
    if not all_reported(run):
        places[f"gpu{len(places)}"] = []
    return places


def _known(device: DeviceRow, min_coverage: float) -> bool:
    return mean_pct(device, min_coverage) is not None


def _use(devices: Sequence[DeviceRow], min_coverage: float) -> dict[str, Any]:
    """Return the statistics over nodes, percent and bytes; each only if it is known for all nodes."""
    measured: dict[str, list[float | None]] = {
        "gpuactive": [mean_pct(device, min_coverage) for device in devices],
        "memusedmax": [device.mem_max_b for device in devices],
    }
    return {name: _statistics(values) for name, values in measured.items() if values and None not in values}


def _energy(devices: Sequence[DeviceRow]) -> dict[str, Any]:
    """Return the energy over nodes, joules; empty unless it was measured on all of them."""
    joules = [device.energy_j for device in devices]
    if not joules or None in joules:
        return {}
    return {"energy": {**_statistics(joules), "total": sum(value or 0.0 for value in joules)}}


def _statistics(values: Sequence[float | None]) -> dict[str, float]:
    """Return the statistics that XDMoD stores; for equal values mean and number, which is equivalent."""
    known = [float(value or 0.0) for value in values]
    mean, low, high = statistics.fmean(known), min(known), max(known)
    if low == high:
        return {"avg": known[0], "cnt": len(known)}
    spread = statistics.stdev(known)
    found = {"avg": mean, "cnt": len(known), "min": low, "max": high, "med": statistics.median(known)}
    return {**found, "std": spread, "cov": spread / mean}

"""What the system tests ask of a running site: its hub, its agents' metrics and logs."""

import re
import shutil
import time
import urllib.request
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster import LoopbackCluster, ManagedProcess
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site

Document = dict[str, Any]
UNITS = Path(__file__).parents[2] / "etc" / "systemd"
_CLASSES = ("idle", "low", "moderate", "high", "suspended", "pending", "unknown")


def metric(site: Site, node: str, name: str) -> list[float]:
    """Return the values of a metric of a node's agent, one for each of its series."""
    with urllib.request.urlopen(f"http://127.0.0.1:{site.exporters[node]}/metrics", timeout=patient(10)) as answer:
        lines = answer.read().decode().splitlines()
    return [float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))]


def wait_ticks(site: Site, node: str, more: int = 2, timeout_s: float = 15) -> None:
    """Wait until the agent of a node has looked that many times from now on."""
    target = time.monotonic() + (more - 1) * site.options.interval_s

    def looked() -> bool:
        lag = metric(site, node, "gpuwaste_agent_sample_lag_seconds")
        return bool(lag) and time.monotonic() - lag[0] >= target

    wait_until(looked, timeout_s, f"{more} more ticks on {node}", site.agents[node].tail, poll_s=0.1)


def wait_log(process: ManagedProcess, words: str, timeout_s: float = 15) -> list[str]:
    """Wait until a process of this start has logged a line with these words (a regular expression); return them."""
    found: list[str] = []

    def said() -> bool:
        found[:] = [line for line in log_lines(process) if re.search(words, line)]
        return bool(found)

    process.wait_for(said, timeout_s, f"{words!r} in the log")
    return found


def log_lines(process: ManagedProcess) -> list[str]:
    """Return all that a process, and those of its name before it, have logged."""
    return process.logs[0].read_text(encoding="utf-8", errors="replace").splitlines()


def wait_told(
    client: SlurmClient, cluster: LoopbackCluster, ids: Collection[int], window: tuple[int, int]
) -> dict[RunKey, JobRecord]:
    """Wait until accounting tells each job in a window, and return what it tells.

    A job that was cancelled before it was eligible is in no window of sacct: nobody waits for it.
    """
    told: dict[RunKey, JobRecord] = {}

    def missing() -> set[int]:
        return set(ids) - {key.job_id for key in told}

    def all_told() -> bool:
        told.clear()
        told.update({row.run_key: row for row in client.accounting(*window) if isinstance(row, JobRecord)})
        rows = [row for job in missing() for row in cluster.sacct("-j", str(job))]
        return all((row["State"].split()[0], row["Elapsed"]) == ("CANCELLED", "00:00:00") for row in rows)

    wait_until(all_told, 60, "accounting to tell every job", lambda: str(missing()))
    return told


def ended_job(site: Site, job: int, devices: int, timeout_s: float = 30) -> list[Document]:
    """Wait until accounting's ends and the agents' last rows of a job are in the hub; return the document's runs."""
    client = site.as_root()
    runs: list[Document] = []
    state: list[str] = []

    def complete() -> bool:
        state[:] = [
            f"outbox of {node}" for node in site.agents if metric(site, node, "gpuwaste_agent_outbox_rows") != [0.0]
        ]
        try:
            runs[:] = [run for run in client.get(f"/v1/jobs/{job}")["runs"] if run["start"] is not None]
        except GpuwasteError as error:
            state.append(str(error))
            return False
        seen = [device for run in runs for device in run["devices"] if device["gpu_uuid"]]
        held = any(metric(site, node, "gpuwaste_gpu_job_info") for node in site.agents)
        state.append(f"{len(seen)} of {devices} devices, held {held}, {[run['end'] for run in runs]}")
        return len(state) == 1 and len(seen) >= devices and all(run["end"] for run in runs) and not held

    wait_until(complete, timeout_s, f"job {job} to be reported", lambda: f"{state} {runs}", poll_s=0.3)
    for run in runs:
        for device in run["devices"]:
            assert adds_up(device), device
    return runs


def adds_up(device: Document) -> bool:
    """Tell whether every second of a device is in exactly one class."""
    return bool(abs(sum(device[f"{name}_s"] for name in _CLASSES) - device["gpu_s"]) < 0.001)


def known_s(device: Document) -> float:
    """Return the seconds with a utilization."""
    return float(device["gpu_s"] - device["unknown_s"] - device["suspended_s"] - device["pending_s"])


def until(predicate: Callable[[], bool], what: str, timeout_s: float = 15) -> None:
    """Poll until something holds."""
    wait_until(predicate, timeout_s, what, poll_s=0.1)


def filtered(site: Site, name: str) -> tuple[str, ...]:
    """Return the command that starts a daemon under its unit's filter of system calls."""
    if shutil.which("systemd-analyze") is None:
        return ()
    unit = site.directory / f"gpuwaste-{name}.service"
    shutil.copy(UNITS / unit.name, unit)
    return tuple(site.runtime.module("gpuwaste.testing.unit_filter", str(unit)))

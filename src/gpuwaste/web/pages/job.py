"""/jobs/ID: what a job did with its GPUs, why, what to change, and every number behind it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpuwaste.core.units import format_size
from gpuwaste.documents.report_types import DeviceHours, DeviceRow, JobDocument, RunRow
from gpuwaste.web.environment import Frame, page
from gpuwaste.web.words import duration, gpu_hours, share

RUNS: Final = 50
_MUCH: Final = 0.1  # of the GPU-time: less waste needs no cause


@dataclass(frozen=True, slots=True)
class Track:
    """One GPU of a run with its strip."""

    name: str
    node: str
    device: DeviceRow
    hours: DeviceHours | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One thing that was requested, and what was used of it."""

    name: str
    requested: str
    used: str


@dataclass(frozen=True, slots=True)
class RunView:
    """One run as the page shows it."""

    row: RunRow
    start: int
    end: int
    tracks: Sequence[Track]
    comparisons: Sequence[Comparison]


def job_page(document: JobDocument, frame: Frame) -> str:
    """Return the page of a job's runs."""
    path = f"/jobs/{document.job_id}"
    runs = [_run(run, document) for run in document.runs[:RUNS]]
    states = Counter(run.state for run in document.runs)
    return page(
        "job",
        replace(frame, links={"csv": f"{path}.csv", "json": f"{path}.json"}),
        document=document,
        sentence=_sentence(document),
        runs=runs,
        left_out=len(document.runs) - len(runs),
        states=", ".join(f"{count} {state.lower().replace('_', ' ')}" for state, count in states.most_common(6)),
        gpu_s=_sum(document.runs, "gpu_s"),
        wasted_s=_sum(document.runs, "wasted_s"),
    )


def _sentence(document: JobDocument) -> str:
    runs = document.runs
    job = f"Job {document.job_id} {runs[0].name[:60]}".rstrip()
    started = [run for run in runs if run.start is not None]
    if not started:
        return f"{job} has not started."
    gpu_s, wasted_s = _sum(runs, "gpu_s"), _sum(runs, "wasted_s")
    if not gpu_s:
        return f"{job} held no GPU of its own."
    if not any(run.totals.coverage for run in started):
        return f"What {job} did with its GPUs is not known."
    so_far = " so far" if any(run.running for run in started) else ""
    wasted = f"{job} wasted {gpu_hours(wasted_s)} of {gpu_hours(gpu_s)} GPU-hours{so_far} ({share(wasted_s, gpu_s)})"
    cause = document.findings[0].title.partition(": ")[0][:200] if document.findings else ""
    return f"{wasted}: {cause}." if cause and wasted_s >= _MUCH * gpu_s else f"{wasted}."


def _sum(runs: Sequence[RunRow], name: str) -> float:
    return sum(float(getattr(run.totals, name)) for run in runs if run.start is not None)


def _run(run: RunRow, document: JobDocument) -> RunView:
    hours = {
        (found.node, found.gpu_uuid): found
        for found in document.hours
        if (found.cluster, found.raw_id, found.start) == (run.cluster, run.raw_id, run.start)
    }
    devices = sorted([*run.devices, *run.shared], key=lambda device: (device.node or "~", device.gpu_uuid or ""))
    tracks = [
        Track(f"GPU {place}", device.node or "", device, hours.get((device.node or "", device.gpu_uuid or "")))
        for place, device in enumerate(devices)
    ]
    start = run.start or run.submit
    end = run.end or document.generated
    return RunView(run, start, max(end, start + 1), tracks, _comparisons(run))


def _comparisons(run: RunRow) -> list[Comparison]:
    """Return what was requested and used; a line without any figure is left out."""
    known = [device for device in run.devices if device.level != "unknown"]
    used = str(sum(device.level != "none" for device in known)) if known else "not known"
    found = [Comparison("GPUs", f"{run.gpus or 0} {run.gpu_type[:32]}".rstrip(), used)]
    if run.cpus:
        busy = "not known" if run.cpu_efficiency is None else f"{run.cpus * run.cpu_efficiency:.1f}"
        found.append(Comparison("CPUs", str(run.cpus), busy))
    if run.mem_req_b or run.max_rss_b:
        requested = format_size(run.mem_req_b) if run.mem_req_b else "not known"
        found.append(Comparison("Memory", requested, _memory(run)))
    if run.elapsed_s is not None:
        limit = duration(run.time_limit_s) if run.time_limit_s else "no limit"
        found.append(Comparison("Time", limit, duration(run.elapsed_s)))
    return found


def _memory(run: RunRow) -> str:
    if run.memory_efficiency is not None:
        return share(run.memory_efficiency)
    return format_size(run.max_rss_b) if run.max_rss_b else "not known"

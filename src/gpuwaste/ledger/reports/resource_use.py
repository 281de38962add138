"""What a run requested and what it used of it, with the share: GPUs, CPUs, memory, time."""

from dataclasses import dataclass

from gpuwaste.core.units import format_size
from gpuwaste.ledger.reports.job_types import RunRow
from gpuwaste.show.page_words import UNKNOWN, duration, share


@dataclass(frozen=True, slots=True)
class Comparison:
    """One requested resource, and how much of it was used."""

    name: str
    requested: str
    used: str
    share: str = ""


def comparisons(run: RunRow) -> list[Comparison]:
    """Return requested and used resources; a line without figures is left out."""
    known = [device for device in run.devices if device.level != "unknown"]
    used, gpus = sum(device.level != "none" for device in known), run.gpus or 0
    every = bool(known) and len(known) == len(run.devices)
    requested = f"{gpus} {run.gpu_type[:32]}".rstrip()
    found = [
        Comparison("GPUs", requested, str(used) if known else UNKNOWN, share(used, gpus) if every and gpus else "")
    ]
    if run.cpus:
        busy = run.cpu_efficiency
        cpus = UNKNOWN if busy is None else f"{run.cpus * busy:.1f}"
        found.append(Comparison("CPUs", str(run.cpus), cpus, "" if busy is None else share(busy)))
    if run.mem_req_b or run.max_rss_b:
        memory, most = run.memory_efficiency, run.max_rss_b
        requested = format_size(run.mem_req_b) if run.mem_req_b else UNKNOWN
        size = format_size(most) if most else UNKNOWN
        found.append(Comparison("Memory", requested, size, "" if memory is None else share(memory)))
    if run.elapsed_s is not None:
        limit = duration(run.time_limit_s) if run.time_limit_s else "no limit"
        of = share(run.elapsed_s, run.time_limit_s) if run.time_limit_s else ""
        found.append(Comparison("Time", limit, duration(run.elapsed_s), of))
    return found

"""From sbatch's options to what they ask for: nodes, processors, memory, GPUs and time of the whole job.

The amounts are those of Slurm's own ReqTRES before the job is scheduled. What slurmctld alone knows stays None: the
default limit and memory of a partition, all the memory of a node (--mem=0).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S
from gpuwaste.slurm.hostlist import expand
from gpuwaste.slurm.sbatch_components import MEMORY_OPTIONS, two_memories
from gpuwaste.slurm.sbatch_words import Given, refusal

_NUMBER: Final = re.compile(r" *\+?(\d{1,9})", re.ASCII)
_NODES: Final = re.compile(r"(\d{1,9})([km]?)(?:-(\d{1,9})([km]?))?", re.ASCII | re.IGNORECASE)
_MEMORY: Final = re.compile(r"(\d{1,15})([KMGT]?)B?", re.ASCII | re.IGNORECASE)
_GPUS: Final = re.compile(r"(?:([A-Za-z_][\w.\-]*):)?(\d{1,9})([km]?)", re.ASCII | re.IGNORECASE)
_TIME: Final = re.compile(r"(?:(\d{1,6})-)?(\d{1,9})?(?::(\d{1,9}))?(?::(\d{1,9}))?", re.ASCII)
_KILO: Final = {"": 1, "k": 1 << 10, "m": 1 << 20}
_UNITS_B: Final = {"K": 1 << 10, "": 1 << 20, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MIB: Final = 1 << 20
Options = Mapping[str, Given]


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a job asks for as a whole; None is "slurmctld decides"."""

    nodes: int
    cpus: int
    mem_b: int | None
    gpus: int
    gpu_type: str
    time_limit_s: int | None


def amounts(options: Options) -> Amounts:
    """Return the amounts of one component. Raises ParseError or UsageError for a value that sbatch refuses."""
    low, high = _node_range(options)
    hosts = len(expand(_value(options, "nodelist"))) if "nodelist" in options else 0
    tasks = _whole(options, "ntasks")
    if hosts and "nodes" not in options:
        low = high = max(1, hosts if tasks is None else min(hosts, tasks))
    if tasks is not None and tasks < low:
        low = high = tasks  # sbatch lowers the number of nodes to that of the tasks
    per_node, types = _gpus_on_a_node(options)
    job_gpus = _gpu_list(options["gpus"]) if "gpus" in options else None
    if tasks is None:
        tasks = _tasks(options, low, high, sum(job_gpus.values()) if job_gpus else per_node * low)
    cpus = low if "overcommit" in options else tasks * (_whole(options, "cpus-per-task") or 1)
    if job_gpus is not None:
        gpus, types = sum(job_gpus.values()), types | job_gpus.keys()
    elif "gpus-per-task" in options:
        of_task = _gpu_list(options["gpus-per-task"])
        gpus, types = sum(of_task.values()) * tasks, types | of_task.keys()
    elif not per_node and "ntasks" in options and (per_gpu := _whole(options, "ntasks-per-gpu")):
        gpus = tasks // per_gpu
    else:
        gpus = per_node * low
    return Amounts(
        nodes=low,
        cpus=cpus,
        mem_b=_memory(options, low, cpus, gpus),
        gpus=gpus,
        gpu_type=",".join(sorted(types - {""})) if gpus else "",
        time_limit_s=time_limit_s(options["time"]) if "time" in options else None,
    )


def time_limit_s(given: Given) -> int | None:
    """Return --time in seconds, whole minutes as Slurm keeps them; None for unlimited."""
    text = given.value or ""
    if text.upper() in {"UNLIMITED", "INFINITE", "-1"}:
        return None
    found = _TIME.fullmatch(text)
    if not text or found is None or (found[1] is None and found[2] is None):
        raise refusal(given.where, f"--{given.name}={text[:40]}: expected M, M:S, H:M:S, D-H, D-H:M or D-H:M:S")
    days, a, b, c = (int(group or 0) for group in found.groups())
    if found[1] is not None:
        seconds = days * DAY_S + a * HOUR_S + b * MINUTE_S + c
    elif found[4] is not None:
        seconds = a * HOUR_S + b * MINUTE_S + c
    else:
        seconds = a * MINUTE_S + b
    return math.ceil(seconds / MINUTE_S) * MINUTE_S or None


def _value(options: Options, name: str) -> str:
    return options[name].value or ""


def _bad(given: Given, expected: str) -> Exception:
    return refusal(given.where, f"--{given.name}={(given.value or '')[:40]}: expected {expected}")


def _whole(options: Options, name: str) -> int | None:
    if name not in options:
        return None
    found = _NUMBER.fullmatch(_value(options, name))
    if found is None or int(found[1]) == 0:
        raise _bad(options[name], "a whole number above 0")
    return int(found[1])


def _node_range(options: Options) -> tuple[int, int]:
    if "nodes" not in options:
        return 1, 1
    found = _NODES.fullmatch(_value(options, "nodes").replace(" ", ""))
    if found is None:
        raise _bad(options["nodes"], "a number of nodes, or MIN-MAX")
    low = max(1, int(found[1]) * _KILO[found[2].lower()])
    high = int(found[3]) * _KILO[found[4].lower()] if found[3] else 0
    if high and high < low:
        raise _bad(options["nodes"], "MIN-MAX, with MIN not above MAX")
    return low, high or low


def _tasks(options: Options, low: int, high: int, gpus: int) -> int:
    """Return the number of tasks where --ntasks does not say it."""
    if (per_node := _whole(options, "ntasks-per-node")) is not None:
        return per_node * low
    if (per_gpu := _whole(options, "ntasks-per-gpu")) is not None and gpus:
        return per_gpu * gpus
    if "gpus-per-task" in options and gpus and (each := sum(_gpu_list(options["gpus-per-task"]).values())):
        return max(1, gpus // each)
    if low == high and not options.keys().isdisjoint({"nodes", "nodelist", "extra-node-info"}):
        return low * math.prod(_layout(options))
    return 1  # of a range of nodes Slurm counts one task until it is scheduled


def _layout(options: Options) -> list[int]:
    """Return sockets of a node, cores of a socket and threads of a core as far as they are asked for, else 1."""
    text = _value(options, "extra-node-info") if "extra-node-info" in options else ""
    parts = [int(found[0]) if (found := re.match(r"\d{1,6}", part)) else 1 for part in [*text.split(":"), "", "", ""]]
    names = ("sockets-per-node", "cores-per-socket", "threads-per-core")
    return [_whole(options, name) or part for name, part in zip(names, parts, strict=False)]


def _gpus_on_a_node(options: Options) -> tuple[int, set[str]]:
    """Return the GPUs of each node and their types."""
    if "gpus-per-node" in options:
        found = _gpu_list(options["gpus-per-node"])
    elif "gres" in options:
        found = _gres(options["gres"])
    elif "gpus-per-socket" in options:
        sockets = _layout(options)[0]
        found = {kind: count * sockets for kind, count in _gpu_list(options["gpus-per-socket"]).items()}
    else:
        return 0, set()
    return sum(found.values()), set(found)


def _gres(given: Given) -> dict[str, int]:
    """Return type -> count of the GPUs in a --gres list; other resources are passed over."""
    found: dict[str, int] = {}
    for item in (given.value or "").split(","):
        name, *rest = item.removeprefix("gres/").removeprefix("gres:").split(":")
        if name != "gpu":
            if name.startswith(("gpu=", "gpu(")):
                raise _bad(given, "gpu[:TYPE][:COUNT]")
            continue
        kind, count = _typed(":".join(rest), given) if rest else ("", 1)
        found[kind] = found.get(kind, 0) + count
    return found


def _gpu_list(given: Given) -> dict[str, int]:
    """Return type -> count of --gpus and its like: [TYPE:]COUNT, several with commas between."""
    found: dict[str, int] = {}
    for item in (given.value or "").split(","):
        match = _GPUS.fullmatch(item.strip())
        if match is None:
            raise _bad(given, "[TYPE:]COUNT")
        kind = match[1] or ""
        found[kind] = found.get(kind, 0) + int(match[2]) * _KILO[match[3].lower()]
    return found


def _typed(text: str, given: Given) -> tuple[str, int]:
    match = _GPUS.fullmatch(text)
    if match is not None:
        return match[1] or "", int(match[2]) * _KILO[match[3].lower()]
    if re.fullmatch(r"[\w.\-]{1,64}", text, re.ASCII):
        return text, 1
    raise _bad(given, "gpu[:TYPE][:COUNT]")


def _memory(options: Options, nodes: int, cpus: int, gpus: int) -> int | None:
    given = [options[name] for name in MEMORY_OPTIONS if name in options]
    if len(given) > 1:
        raise two_memories(given)
    if not given:
        return None
    found = _MEMORY.fullmatch(given[0].value or "")
    if found is None:
        raise _bad(given[0], "a whole number with K, M, G or T")
    each_mib = math.ceil(int(found[1]) * _UNITS_B[found[2].upper()] / _MIB)  # Slurm counts whole MiB
    count = {"mem": nodes, "mem-per-cpu": cpus, "mem-per-gpu": gpus}[given[0].name]
    return each_mib * count * _MIB or None

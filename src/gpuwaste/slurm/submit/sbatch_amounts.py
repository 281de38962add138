"""The amounts that sbatch's options request: nodes, processors, memory, GPUs and time of the entire job.

The amounts are those of Slurm's own ReqTRES before the job is scheduled. What only slurmctld knows stays None: the
default limit and memory of a partition, all the memory of a node (--mem=0). Since Slurm 24.11 (or earlier, after
22.05) a count of GPUs may follow an equals sign: gpu=2, gpu:a100=2.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.submit.gpu_items import RequestedGpus, counted, cpus_by_gpus, cpus_of, gpu_item, settle, typed_count
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch_components import MEMORY_OPTIONS, two_memories
from gpuwaste.slurm.submit.sbatch_options import Given, refusal

_KILO: Final = {"": 1, "k": 1 << 10, "m": 1 << 20}  # factor of the last letter of a number of nodes
_NODES: Final = re.compile(r"(\d{1,9})([km]?)(?:-(\d{1,9})([km]?)(?::(\d{1,9}))?)?", re.ASCII | re.IGNORECASE)
# str_to_mbytes() in src/common/proc_args.c: strtoll(), then a unit; a B may follow only a unit.
_MEMORY: Final = re.compile(r"[ \t]*\+?0*(\d{1,15})(?:([KMGT])B?)?", re.ASCII | re.IGNORECASE)
# _is_valid_timespec() in src/common/parse_time.c: a number at each place, except for the hours of D-.
_TIME: Final = re.compile(
    r"(?:(\d{1,6})-)(?:(\d{1,9})(?::(\d{1,9})(?::(\d{1,9}))?)?)?|(\d{1,9})(?::(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII
)
_LEADING: Final = re.compile(r"[1-9]\d{0,5}", re.ASCII)
_LAYOUT: Final = {"sockets-per-node": 0, "cores-per-socket": 1, "threads-per-core": 2}
_FIXED: Final = frozenset({"nodes", "nodelist", "extra-node-info"})  # with one of them there is a task for each node
_UNITS_B: Final = {"K": 1 << 10, "": 1 << 20, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MIB: Final = 1 << 20
Options = Mapping[str, Given]
_T = TypeVar("_T")
_NUMBER: Final = re.compile(r" *\+?(\d{1,9})", re.ASCII)


def with_amounts(request: JobRequest, options: Options) -> JobRequest:
    """Return a component's request with its amounts. Raises ParseError, UsageError for a value that sbatch rejects."""
    low, high = _node_range(options)
    if (tasks := _whole(options, "ntasks")) is not None and tasks < low:
        low = high = tasks  # sbatch lowers the number of nodes to that of the tasks
    layout = _layout(options)
    least, said, later = _tasks(options, low, high, layout)
    gpus = _gpus_asked(options)
    asked = settle(gpus, low, layout[0], said)
    cpus = low
    if "overcommit" not in options:
        of_task = _whole(options, "cpus-per-task") or 1
        by_gpus = cpus_by_gpus(_whole(options, "cpus-per-gpu") or 0, gpus)
        more = max(asked.tasks or later, _hosts(options) if low < high else 0)
        cpus = cpus_of(least * of_task, more, by_gpus or of_task)
    return replace(
        request,
        nodes=asked.nodes,
        cpus=cpus,
        mem_b=_memory(options, asked.nodes, cpus, asked.gpus),
        gpus=asked.gpus,
        gpu_type=asked.types,
        time_limit_s=time_limit_s(options["time"]) if "time" in options else None,
    )


def time_limit_s(given: Given) -> int | None:
    """Return --time in seconds, in full minutes as Slurm keeps them; None for unlimited."""
    text = given.value or ""
    if text.upper() in {"UNLIMITED", "INFINITE", "-1"}:
        return None
    found = _TIME.fullmatch(text)
    if found is None:
        raise refusal(given.where, f"--{given.name}={text[:40]}: expected M, M:S, H:M:S, D-H, D-H:M or D-H:M:S")
    days, hours, minutes, seconds, *short = (int(group or 0) for group in found.groups())
    if found[1] is None:  # the last number is seconds where there are three, else the first one is minutes
        hours, minutes, seconds = short if found[7] is not None else (0, *short[:2])
    seconds += days * DAY_S + hours * HOUR_S + minutes * MINUTE_S
    return math.ceil(seconds / MINUTE_S) * MINUTE_S or None


def _node_range(options: Options) -> tuple[int, int]:
    """Return the smallest and the largest number of nodes."""
    hosts = _hosts(options)
    if "nodes" not in options:
        tasks = _whole(options, "ntasks")
        hosts = max(1, hosts if tasks is None else min(hosts, tasks))
        return hosts, hosts
    ranges = [_node_counts(options["nodes"], item) for item in _value(options, "nodes").replace(" ", "").split(",")]
    low, high = min(least for least, _ in ranges), max(most for _, most in ranges)
    return max(low, min(hosts, high)), high  # Slurm after 22.05 accepts a --nodelist that names more than --nodes


def _node_counts(given: Given, text: str) -> tuple[int, int]:
    """Return smallest and largest number of N, MIN-MAX or MIN-MAX:STEP; lists and steps are newer than Slurm 22.05."""
    found = _NODES.fullmatch(text)
    if found is None:
        raise _bad(given, "a number of nodes, or MIN-MAX")
    low = max(1, int(found[1]) * _KILO[found[2].lower()])
    high = (int(found[3]) * _KILO[found[4].lower()] if found[3] else 0) or low
    if high < low:
        raise _bad(given, "MIN-MAX, with MIN not above MAX")
    step = int(found[5] or 1) or 1
    return low, low + (high - low) // step * step


def _hosts(options: Options) -> int:
    return len(set(expand(_value(options, "nodelist")))) if "nodelist" in options else 0


def _tasks(options: Options, low: int, high: int, layout: list[int]) -> tuple[int, int | None, int]:
    """Return three numbers of tasks: those whose CPUs sbatch requests, those in the options, those slurmctld derives.

    For a range of nodes Slurm counts one task until the job is scheduled.
    """
    if (tasks := _whole(options, "ntasks")) is not None:
        return tasks, tasks, 0
    per_node = _whole(options, "ntasks-per-node")
    if low != high:
        return 1, None, (per_node or 0) * low
    if per_node is not None:
        return per_node * low, per_node * low, 0
    if options.keys().isdisjoint(_FIXED):
        return 1, None, 0
    tasks = low * math.prod(layout)
    return tasks, None if options.keys().isdisjoint({*_LAYOUT, "extra-node-info"}) else tasks, 0


def _layout(options: Options) -> list[int]:
    """Return sockets per node, cores per socket and threads per core where they are requested, else 1.

    The options apply in the order given; --extra-node-info sets all three.
    """
    found = [1, 1, 1]
    for name in options:
        if name in _LAYOUT:
            found[_LAYOUT[name]] = _whole(options, name) or 1
        elif name == "extra-node-info":
            parts = [*_value(options, name).split(":", 3), "", "", ""][:3]
            found = [int(match[0]) if (match := _LEADING.match(part)) else 1 for part in parts]
    return found


def _memory(options: Options, nodes: int, cpus: int, gpus: int) -> int | None:
    given = [options[name] for name in MEMORY_OPTIONS if name in options]
    if len(given) > 1:
        raise two_memories(given)
    if not given:
        return None
    found = _MEMORY.fullmatch(given[0].value or "")
    if found is None:
        raise _bad(given[0], "a whole number, with K, M, G, T, KB, MB, GB or TB")
    each_mib = -(-int(found[1]) * _UNITS_B[(found[2] or "").upper()] // _MIB)  # Slurm counts full MiB
    count = {"mem": nodes, "mem-per-cpu": cpus, "mem-per-gpu": gpus}[given[0].name]
    return each_mib * count * _MIB or None


def _gpus_asked(options: Mapping[str, Given]) -> RequestedGpus:
    """Return the requested GPUs. Raises ParseError or UsageError for a value that sbatch rejects."""
    on_node = [*_gres(options), *_list(options, "gpus-per-node")]
    return RequestedGpus(
        of_job=counted(_list(options, "gpus")),
        of_node=counted(on_node),
        of_socket=counted(_list(options, "gpus-per-socket")),
        of_task=counted(_list(options, "gpus-per-task")),
        tasks_of_gpu=_whole(options, "ntasks-per-gpu") or 0,
    )


def _list(options: Mapping[str, Given], name: str) -> list[tuple[str, int]]:
    """Return type and count of each item of --gpus and its like: TYPE:COUNT, COUNT or TYPE, with commas between."""
    if name not in options:
        return []
    given = options[name]
    return [_read(typed_count, item, given, "[TYPE:]COUNT") for item in _value(options, name).split(",") if item]


def _gres(options: Mapping[str, Given]) -> list[tuple[str, int]]:
    """Return type and count of the GPUs in a --gres list; other resources are skipped."""
    found = []
    for item in _value(options, "gres").split(",") if "gres" in options else ():
        if not item.removeprefix("gres/").removeprefix("gres:"):
            raise _bad(options["gres"], "gpu[:TYPE][:COUNT]")
        found.append(_read(gpu_item, item, options["gres"], "gpu[:TYPE][:COUNT]"))
    return [asked for asked in found if asked is not None]


def _read(reader: Callable[[str], _T], item: str, given: Given, expected: str) -> _T:
    try:
        return reader(item)
    except ParseError as error:
        raise _bad(given, expected) from error


def _value(options: Mapping[str, Given], name: str) -> str:
    """Return the value of an option that is given."""
    return options[name].value or ""


def _whole(options: Mapping[str, Given], name: str) -> int | None:
    """Return a number above 0, None where the option is not given. Raises ParseError or UsageError."""
    if name not in options:
        return None
    found = _NUMBER.fullmatch(_value(options, name))
    if found is None or int(found[1]) == 0:
        raise _bad(options[name], "a whole number above 0")
    return int(found[1])


def _bad(given: Given, expected: str) -> GpuwasteError:
    """Return the error for a value."""
    return refusal(given.where, f"--{given.name}={(given.value or '')[:40]}: expected {expected}")

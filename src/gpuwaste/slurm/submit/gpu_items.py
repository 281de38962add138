"""The GPUs in a list that requests GRES (--gres, --gpus and its like, tres_per_* of a job, sacct's ReqGRES).

An item is gpu[:TYPE][:COUNT], after gres: up to Slurm 22.05 and gres/ later, and without gpu: in --gpus and its like.
The type is any text before the last colon, so it may begin with a digit (1g.10gb, 3090); a last part that is not a
number is a type, of one GPU. See slurm_get_next_tres() in src/common/slurm_protocol_defs.c, and _get_next_gres() in
src/common/gres.c of 22.05, which does not read the `=` before a count that later releases accept.
sbatch's options and a plugin's job description both give what Slurm counts for the job. Compared with slurmctld
22.05 on random requests in tests/contract/test_sbatch_tres_contract.py.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.core.errors import ParseError

_NUMBER: Final = re.compile(r"(\d{1,20})(?:([kmgtp])(i?b)?)?", re.ASCII | re.IGNORECASE)
_SUFFIXES: Final = "kmgtp"
_LARGEST: Final = (1 << 64) - 1  # strtoull() returns this for a number that is too large, and Slurm reads it as none
MOST: Final = (1 << 31) - 1
"""Far above any cluster; larger counts are cut to this."""
_NAME: Final = "gpu"
_FORM: Final = "expected gpu[:TYPE][:COUNT]"
Counts = Mapping[str, int]
"""Type -> count, "" for any type."""
GPU_OPTIONS: Final = ("--gres", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "--gpus", "-G")
_EACH: Final = re.compile(r"(?:.*[:=])?([1-9][0-9]{0,4})", re.ASCII)


def count_of(text: str) -> int | None:
    """Return a count as Slurm reads it (2, 1k, 1KiB: 1024, 1kb: 1000), at most 2^31 - 1; None for no number."""
    found = _NUMBER.fullmatch(text)
    if found is None or int(found[1]) >= _LARGEST:
        return None
    base = 1000 if (found[3] or "").lower() == "b" else 1024
    power = _SUFFIXES.index(found[2].lower()) + 1 if found[2] else 0
    return min(int(found[1]) * int(base**power), MOST)


def typed_count(text: str) -> tuple[str, int]:
    """Return the type, "" for any, and the number of TYPE:COUNT, TYPE=COUNT, COUNT or TYPE. Raises ParseError."""
    kind, sign, last = _parted(text)
    count = count_of(last)
    if not last or (count is None and sign):
        raise ParseError(f"{text[:40]!r}: expected [TYPE:]COUNT")
    return (last, 1) if count is None else (kind, count)


def gpu_item(item: str) -> tuple[str, int] | None:
    """Return type and number of the GPUs that one item of a GRES list requests, None for another resource.

    Raises ParseError for an item that Slurm accepts as neither.
    """
    item = item.removeprefix("gres/").removeprefix("gres:")
    if item == _NAME:
        return "", 1
    if not item.startswith(_NAME) or item[len(_NAME)] not in ":=(":
        return None
    if item[len(_NAME)] == "(":
        raise ParseError(f"{item[:40]!r}: {_FORM}")
    try:
        if item[len(_NAME)] == "=":
            return "", _only_count(item[len(_NAME) + 1 :])
        return typed_count(item[len(_NAME) + 1 :])
    except ParseError as error:
        raise ParseError(f"{item[:40]!r}: {_FORM}") from error


def gpu_items(text: str) -> Iterator[tuple[str, int]]:
    """Yield type and number of the GPUs in a list; an item that Slurm rejects requests none."""
    for item in text.split(","):
        try:
            found = gpu_item(item.strip())
        except ParseError:
            continue
        if found is not None:
            yield found


def _parted(text: str) -> tuple[str, str, str]:
    """Return the text before the last `=`, else before the last colon, that sign, and the text after it."""
    return text.rpartition("=" if "=" in text else ":")


def _only_count(text: str) -> int:
    count = count_of(text)
    if count is None:
        raise ParseError(f"{text[:40]!r}: expected a number")
    return count


@dataclass(slots=True)
class RequestedGpus:
    """Requested GPUs per job, per node, per socket and per task, and tasks per GPU (0: not given)."""

    of_job: Counts = field(default_factory=dict)
    of_node: Counts = field(default_factory=dict)
    of_socket: Counts = field(default_factory=dict)
    of_task: Counts = field(default_factory=dict)
    tasks_of_gpu: int = 0


@dataclass(slots=True)
class Settled:
    """What the job gets in total; `tasks` is the number of tasks that follows from the GPUs, 0 if none does."""

    gpus: int  # at most MOST
    types: str
    nodes: int
    tasks: int


def counted(items: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the largest count of each type, as Slurm reads a list that names a type twice; 0 requests nothing."""
    found: dict[str, int] = {}
    for kind, count in items:
        if count:
            found[kind] = max(count, found.get(kind, 0))
    return found


def settle(asked: RequestedGpus, nodes: int, sockets: int, tasks: int | None) -> Settled:
    """Return the totals for `nodes` with `sockets` each and `tasks` in all (None: not given)."""
    whole = sum(asked.of_job.values())
    known = whole or sum(asked.of_node.values()) * nodes
    if asked.tasks_of_gpu and not known:
        known = nodes if tasks is None else tasks // asked.tasks_of_gpu
    by_gpus = asked.tasks_of_gpu * known
    if tasks is None and whole and asked.of_task:
        by_gpus = max(1, whole // sum(asked.of_task.values()))
    count = tasks or by_gpus or nodes
    parts = ((asked.of_job, 1), (asked.of_node, nodes), (asked.of_socket, nodes * sockets), (asked.of_task, count))
    gpus = counted((kind, each * times) for part, times in parts for kind, each in part.items())
    # From GPUs per job and per node Slurm computes the number of nodes.
    needed = [each // asked.of_node[kind] for kind, each in asked.of_job.items() if kind in asked.of_node]
    return Settled(
        gpus=min(sum(gpus.values()) or (known if asked.tasks_of_gpu else 0), MOST),
        types=",".join(sorted(gpus.keys() - {""})),
        nodes=max(needed, default=0) or nodes,
        tasks=by_gpus,
    )


def cpus_by_gpus(of_gpu: int, asked: RequestedGpus) -> int:
    """Return the processors of a task by --cpus-per-gpu, 0 for none: GPUs that a task requests by type do not count."""
    return of_gpu * asked.of_task.get("", 0)


def cpus_of(least: int, tasks: int, cpus_of_task: int) -> int:
    """Return the processors of the job: more than sbatch counts only where there are more tasks than it counts."""
    return tasks * max(1, cpus_of_task) if tasks > least else least


def tasks_of(ntasks: str | None, per_task: str | None, gpus: int) -> int | None:
    """Return the tasks of a job with so many GPUs, by the values of --ntasks or of --gpus-per-task; None: not known."""
    if ntasks is not None and ntasks.isascii() and ntasks.isdecimal() and len(ntasks) <= 5 and int(ntasks):  # noqa: PLR2004 digits
        return int(ntasks)
    each = _EACH.fullmatch(per_task or "")
    return gpus // int(each[1]) or None if each else None


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The option that requests GPUs, their type ("" for any), and the tasks among which --gpus-per-task divides them.

    `tasks` None: one for each GPU.
    """

    option: str
    gpu_type: str
    tasks: int | None = None
    on_command_line: bool = False

    def line(self, whole: int, on_a_node: int) -> str:
        """Return the #SBATCH line that requests `whole` GPUs in total, `on_a_node` of them on each node."""
        kind = f"{self.gpu_type}:" if self.gpu_type else ""
        if self.option == "--gres":
            return f"#SBATCH --gres=gpu:{kind}{on_a_node}"
        if self.option == "-G":
            return f"#SBATCH -G {kind}{whole}"
        if self.option == "--gpus":
            return f"#SBATCH --gpus={kind}{whole}"
        if self.option == "--gpus-per-task":
            tasks = self.tasks if self.tasks and whole % self.tasks == 0 else whole
            return f"#SBATCH --ntasks={tasks} --gpus-per-task={kind}{whole // max(1, tasks)}"
        return f"#SBATCH --gpus-per-node={kind}{on_a_node}"  # also for --gpus-per-socket: sockets are not known here

    def none(self) -> str:
        """Return the #SBATCH line that requests no GPU."""
        return "#SBATCH --gpus=0" if self.option in {"-G", "--gpus"} else "#SBATCH --gres=none"

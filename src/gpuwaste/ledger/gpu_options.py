"""How a job asked for its GPUs and CPUs on its command line: a proposal takes the same option with another number."""

import re
import shlex
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.submit.gpu_items import GPU_OPTIONS, GpuRequest, gpu_item, tasks_of, typed_count

_TYPE: Final = re.compile(r"[A-Za-z0-9_.\-]{1,32}")  # that a shell reads as it stands: users copy the line
_CPUS: Final = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
MAX_LINE: Final = 4096  # characters of a submit line that are read: options come first, and shlex takes its time
_LONG: Final = {"-n": "--ntasks", "-c": "--cpus-per-task"}
_LETTERS: Final = frozenset({"-G", *_LONG})
_READ: Final = frozenset({*GPU_OPTIONS, *_LONG.values()})
# Options of sbatch, salloc and srun without a value: the word after them starts the script.
_FLAGS: Final = frozenset(
    {
        "--contiguous",
        "--exclusive",
        "--hold",
        "--no-kill",
        "--no-requeue",
        "--overcommit",
        "--overlap",
        "--oversubscribe",
        "--parsable",
        "--pty",
        "--quiet",
        "--reboot",
        "--requeue",
        "--spread-job",
        "--test-only",
        "--use-min-nodes",
        "--verbose",
        "--wait",
        "-H",
        "-O",
        "-Q",
        "-W",
        "-k",
        "-s",
        "-v",
    }
)


def gpu_request(job: JobRecord) -> GpuRequest:
    """Return how the job asked: from its submit line, else as --gres with the type that it was given."""
    options = _options(job.submit_line[:MAX_LINE])
    given = dict(options)
    for option, value in options:
        for kind in _types(option, value) if option in GPU_OPTIONS else ():
            if not kind or _TYPE.fullmatch(kind):
                tasks = tasks_of(given.get("--ntasks"), given.get("--gpus-per-task"), job.gpus or 0)
                return GpuRequest(option, kind, tasks, on_command_line=True)
    return GpuRequest("--gres", job.gpu_type if _TYPE.fullmatch(job.gpu_type) else "")


def cpus_per_task(job: JobRecord) -> int | None:
    """Return the CPUs that the submit line asks for each task; None: it does not say."""
    value = dict(_options(job.submit_line[:MAX_LINE])).get("--cpus-per-task", "")
    return int(value) if _CPUS.fullmatch(value) else None


def _types(option: str, value: str) -> Iterator[str]:
    """Yield the type of each item of the option's list that asks for GPUs, "" for any."""
    for part in value.split(","):
        with suppress(ParseError):
            found = gpu_item(part) if option == "--gres" else typed_count(part)
            if found is not None:
                yield found[0]


@lru_cache(maxsize=4096)  # the same line is submitted over and over
def _options(submit_line: str) -> list[tuple[str, str]]:
    """Return the options of GPUs, tasks and CPUs before the script; a line that no shell could read has none."""
    try:
        words = deque(shlex.split(submit_line)[1:])
    except ValueError:
        return []
    found: list[tuple[str, str]] = []
    while words:
        word = words.popleft()
        if not word.startswith("-"):
            break
        name, equals, value = word.partition("=")
        if word[:2] in _LETTERS and len(word) > 2:  # noqa: PLR2004 -G4
            name, equals, value = word[:2], "=", word[2:].lstrip("=")
        elif not equals and name not in _FLAGS and (name.startswith("--") or len(name) == 2):  # noqa: PLR2004 -X
            value = words.popleft() if words and not words[0].startswith("-") else ""
        name = _LONG.get(name, name)
        if name in _READ:
            found.append((name, value))
    return found

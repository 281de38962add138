"""How a job asked for its GPUs, and the same line with another number: what a user copies into the script."""

import re
import shlex
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.job import JobRecord
from gpuwaste.slurm.gpu_items import gpu_item, typed_count
from gpuwaste.slurm.gpu_option import GPU_OPTIONS, GpuRequest

_TYPE: Final = re.compile(r"[A-Za-z0-9_.\-]{1,32}")  # that a shell reads as it stands: users copy the line
MAX_LINE: Final = 4096  # characters of a submit line that are read: options come first, and shlex takes its time
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
    for option, value in _options(job.submit_line[:MAX_LINE]):
        for kind in _types(option, value):
            if not kind or _TYPE.fullmatch(kind):
                return GpuRequest(option, kind)
    return GpuRequest("--gres", job.gpu_type if _TYPE.fullmatch(job.gpu_type) else "")


def _types(option: str, value: str) -> Iterator[str]:
    """Yield the type of each item of the option's list that asks for GPUs, "" for any."""
    for part in value.split(","):
        with suppress(ParseError):
            found = gpu_item(part) if option == "--gres" else typed_count(part)
            if found is not None:
                yield found[0]


@lru_cache(maxsize=4096)  # the same line is submitted over and over
def _options(submit_line: str) -> list[tuple[str, str]]:
    """Return the GPU options in front of the script; a line that no shell could read has none."""
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
        if word.startswith("-G") and word != "-G":
            name, value = "-G", word[2:].lstrip("=")
        elif not equals and name not in _FLAGS and (name.startswith("--") or len(name) == 2):  # noqa: PLR2004 -X
            value = words.popleft() if words and not words[0].startswith("-") else ""
        if name in GPU_OPTIONS:
            found.append((name, value))
    return found

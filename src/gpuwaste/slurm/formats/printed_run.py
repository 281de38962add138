"""What can be read from a run's texts: the parts of its printed id, whether it is interactive, its verdict's id.

Ids are printed as 7, as 3_1 and 3_[0-9] of an array, as 4+1 of a heterogeneous job. The token `gw=ID` in AdminComment
names the verdict.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

_PRINTED = re.compile(r"(\d{1,10})(?:_(\d{1,10})|_\[.*\]|\+(\d{1,10}))?", re.ASCII)
_TASKS = re.compile(r"_\[([\d,\-:]{1,4096})", re.ASCII)
_THROTTLE = re.compile(r"%(\d{1,9})\]\Z", re.ASCII)
_STRETCH = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_TOKEN: Final = re.compile(r"(?:^|;)gw=([0-9a-z]{16})(?=;|\Z)", re.ASCII)


@dataclass(frozen=True, slots=True)
class PrintedId:
    """The parts of a printed id; None where the id does not have them."""

    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None
    het_offset: int | None = None


def parse_printed(text: str) -> PrintedId | None:
    """Return the parts of an id, None for a text that is not one."""
    match = _PRINTED.fullmatch(text)
    if match is None:
        return None
    first, task, offset = int(match[1]), match[2], match[3]
    if "_" in text:
        return PrintedId(array_job_id=first, array_task_id=int(task) if task else None)
    return PrintedId(het_job_id=first, het_offset=int(offset)) if offset else PrintedId()


def throttle(printed: str) -> int | None:
    """Return how many tasks of an array may run at once: 4 for 3_[0-99%4], None without such a limit."""
    match = _THROTTLE.search(printed)
    return int(match[1]) or None if match else None


def task_count(printed: str) -> int:
    """Return the number of tasks of an id: 100 for 3_[0-99%4]; a minimum where Slurm cut the list (3_[1,3,...])."""
    match = _TASKS.search(printed)
    if match is None:
        return 1
    stretches = [_STRETCH.fullmatch(part) for part in match[1].split(",")]
    counts = [(int(s[2]) - int(s[1])) // max(int(s[3] or 1), 1) + 1 if s[2] else 1 for s in stretches if s is not None]
    return max(1, sum(count for count in counts if count > 0))


def is_interactive(submit_line: str, steps: Collection[str], *, het_part: bool = False) -> bool:
    """Return whether a run is interactive, by its submit line, or by the names of its steps where that is not kept.

    Only the first component of a het job has the batch step: without a line, another one (`het_part`) counts as batch.
    """
    if "batch" in steps:
        return False
    words = submit_line.split(None, 1)
    if words:
        return words[0].rpartition("/")[2] in {"salloc", "srun"}
    return not het_part and any(step == "interactive" or step[:1].isdigit() for step in steps)


def token_of(admin_comment: str) -> str:
    """Return the verdict's id in an admin_comment, "" where there is none; of several, the last."""
    found = _TOKEN.findall(admin_comment)
    return found[-1] if found else ""

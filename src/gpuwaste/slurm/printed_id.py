"""Job ids as Slurm's commands print them: 7, 3_1 and 3_[0-9] of an array, 4+1 of a heterogeneous job."""

import re
from dataclasses import dataclass

_PRINTED = re.compile(r"(\d{1,10})(?:_(\d{1,10})|_\[.*\]|\+(\d{1,10}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PrintedId:
    """What a printed id tells; None where it does not."""

    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None
    het_offset: int | None = None


def parse_printed(text: str) -> PrintedId | None:
    """Return what an id tells, None for a text that is none."""
    match = _PRINTED.fullmatch(text)
    if match is None:
        return None
    first, task, offset = int(match[1]), match[2], match[3]
    if "_" in text:
        return PrintedId(array_job_id=first, array_task_id=int(task) if task else None)
    return PrintedId(het_job_id=first, het_offset=int(offset)) if offset else PrintedId()

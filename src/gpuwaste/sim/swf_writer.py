"""A table of jobs as a log in Standard Workload Format 2.2, which slurm.swf reads back.

What the format has no column for is left out: GPUs, node names, states beyond its own. Texts become numbers: a name
that is a whole number keeps it, others are numbered by first occurrence above those.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.core.text import harmless
from gpuwaste.jobs.history.job_table import Categories, Ints, JobTable
from gpuwaste.jobs.history.outcome import Outcome

_STATUS: Final = {Outcome.COMPLETED: 1, Outcome.CANCELLED: 5, Outcome.NEVER_STARTED: 5, Outcome.UNKNOWN: -1}
_FAILED: Final = 0
_ROWS: Final = 10_000  # written at a time
_LARGEST: Final = 10**9


def swf_lines(table: JobTable, processors: int, notes: Mapping[str, str]) -> Iterator[str]:
    """Yield a log in pieces of text, its header first; `notes` are header fields besides those of the format.

    Times are counted from the first submission, whose instant is UnixStartTime where it is one. Raises UsageError for a
    table without jobs.
    """
    if not len(table):
        raise UsageError("no job to write")
    begin = int(table.submit[0])
    head = {"Version": "2.2", **notes, "MaxJobs": str(len(table)), "MaxRecords": str(len(table))}
    head |= {"UnixStartTime": str(begin), "MaxProcs": str(processors)}
    yield "".join(f"; {name}: {harmless(value)}\n" for name, value in head.items())
    columns = _columns(table, begin)
    for place in range(0, len(table), _ROWS):
        rows = columns[place : place + _ROWS].tolist()
        yield "".join(" ".join(map(str, row)) + "\n" for row in rows)


def _columns(table: JobTable, begin: int) -> Ints:
    n = len(table)
    unknown = np.full(n, -1, dtype=np.int64)
    started = table.start >= 0
    waited = np.where(started & table.wait_known, table.start - table.submit, unknown)
    statuses = np.array([_STATUS.get(outcome, _FAILED) for outcome in Outcome], dtype=np.int64)
    asked = _known(table.cpus)
    kb_each = np.where(asked > 0, _known(table.mem_b / 1024) // np.maximum(asked, 1), -1)
    return np.column_stack(
        [
            np.arange(1, n + 1),
            table.submit - begin,
            waited,
            _known(table.run_s),
            np.where(started, _known(table.alloc_cpus), unknown),
            unknown,
            unknown,
            asked,
            _known(table.limit_s),
            kb_each,
            statuses[table.outcome],
            _numbers(table.user),
            _numbers(table.account),
            _numbers(table.name),
            _numbers(table.qos),
            _numbers(table.partition),
            unknown,
            unknown,
        ]
    )


def _known(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Ints:
    return np.where(np.isfinite(values) & (values >= 0), np.nan_to_num(values, nan=-1.0, posinf=-1.0), -1).astype(
        np.int64
    )


def _numbers(texts: Categories) -> Ints:
    """Return a number for each row; "" means unknown."""
    given = {
        text: int(text)
        for text in texts.values
        if text.isascii() and text.isdecimal() and len(text) < len(str(_LARGEST))
    }
    following = max(given.values(), default=0) + 1
    numbers = []
    for text in texts.values:
        if text == "":
            numbers.append(-1)
        elif text in given:
            numbers.append(given[text])
        else:
            numbers.append(following)
            following += 1
    return np.array(numbers or [-1], dtype=np.int64)[texts.codes]

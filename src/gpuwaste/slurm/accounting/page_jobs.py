"""The jobs of a page of sacct's text whose rows are one line each, with what counts of their steps."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import decoded
from gpuwaste.slurm.accounting.accounted_use import MEMORY, UTIL, StepPeaks, peak_of

_MAX_LINE: Final = 400_000  # characters, of up to four bytes; DuckDB reads lines of up to 2,000,000 bytes
_PEAKS: Final = "TRESUsageInMax"


class PageJob(NamedTuple):
    """A job: its lines with the number of the first, counted from 1, its texts and an empty one behind them.

    `steps` are the names of its steps, "0" for every numbered one; `peaks` their readings, None on a page without any.
    """

    number: int
    lines: list[str]
    row: list[str]
    steps: set[str]
    peaks: StepPeaks | None


def page_jobs(
    data: bytes,
    columns: Sequence[str],
    delimiter: str,
    skipped: tuple[str, ...],
    leave: Callable[[int, str], None],
) -> Iterator[PageJob]:
    """Yield the jobs; other lines are left over.

    The first of `skipped` is a line that is no row; no row may contain one of the others, which would be read wrongly.
    """
    header, *unsafe = skipped
    unsafe = [text for text in (*unsafe, "\r", "\0") if text.encode() in data]
    key, wanted, peaks = columns.index("JobIDRaw"), len(columns), _peak_column(data, columns)
    last, pending, in_step = "", None, False
    for number, line in enumerate(decoded(data).removesuffix("\n").split("\n"), 1):
        text = line.removesuffix("\r") if unsafe else line
        row = text.split(delimiter)
        whole = len(row) == wanted and len(text) < _MAX_LINE and not (unsafe and any(c in text for c in unsafe))
        job, dot, step = row[key].partition(".") if len(row) > key else ("", "", "")
        begins = _is_id(job)
        if pending is not None and dot and job == last:
            pending.lines.append(line)
            pending.steps.add("0" if step[:1].isdigit() else step)
            if pending.peaks is not None and peaks is not None:
                pending.peaks.add(step, *(_peaks(row[peaks]) if whole else (None, None)))
            in_step = not whole
            continue
        if pending is not None and in_step and not begins:  # a line of the same step
            pending.lines.append(line)
            continue
        in_step = False
        if pending is not None and begins and not dot:
            yield pending
            last, pending = "", None
        if whole and begins and not dot:
            row.append("")
            last, pending = job, PageJob(number, [line], row, set(), None if peaks is None else StepPeaks())
        elif not header or text != header:
            leave(number, line)
    if pending is not None:
        yield pending


def _is_id(text: str) -> bool:
    return text.isdigit() and text.isascii() and len(text) <= 10  # noqa: PLR2004 as sacct_row.py has it


def _peak_column(data: bytes, columns: Sequence[str]) -> int | None:
    """Return the column of steps' peaks, if any step of the page has one."""
    told = _PEAKS in columns and any(name.encode() in data for name in (UTIL, MEMORY))
    return columns.index(_PEAKS) if told else None


def _peaks(text: str) -> tuple[int | None, int | None]:
    """Return a step's peaks; one that cannot be read is unknown."""
    try:
        return peak_of(text, UTIL), peak_of(text, MEMORY)
    except ParseError:
        return None, None

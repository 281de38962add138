"""Accounting over a long time as pages: one window after the other, so that no query is too large for slurmdbd."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.importers.history_source import RawPage
from gpuwaste.jobs.importers.history_store import Resume
from gpuwaste.slurm.accounting.sacct_file import Cut
from gpuwaste.slurm.formats.slurm_times import format_time


@dataclass(frozen=True, slots=True)
class AccountingPeriod:
    """What to read, UTC seconds: from `start` to `end`; where `start` is None, from the last window that was read.

    `overlap_s` is read again before that window, for late rows; `first_s` is how far the very first import goes back.
    """

    start: int | None
    end: int
    window_s: int = DAY_S
    overlap_s: int = 3600
    first_s: int = 30 * DAY_S

    @property
    def context(self) -> Mapping[str, str]:
        """What identifies an import of this period, to continue it where it was interrupted."""
        return {"from": "" if self.start is None else str(self.start)}

    def begin(self, resume: Resume | None) -> int:
        """Return where to begin: an interrupted import continues at its last window."""
        if self.start is None:
            return self.end - self.first_s if resume is None else resume.position - self.overlap_s
        cut_off = resume is not None and not resume.ended and resume.context.get("from") == str(self.start)
        return max(self.start, resume.position) if resume is not None and cut_off else self.start


def windows(start: int, end: int, window_s: int = DAY_S) -> Iterator[tuple[int, int]]:
    """Yield the windows that cover [start, end], none where it is empty."""
    while start < end:
        stop = min(start + window_s, end)
        yield start, stop
        start = stop


def window_pages(
    key: str, period: AccountingPeriod, read: Callable[[int, int], Iterator[Cut]], resume: Resume | None
) -> Iterator[RawPage]:
    """Yield the pages of each window; the mark moves to a window's end with its last page.

    A window without a row is one empty page, so that it is recorded as read. Raises as `read` does.
    """
    number = 0
    for start, end in windows(period.begin(resume), period.end, period.window_s):
        place = f"{key} {format_time(start)}"
        held: Cut | None = None
        for cut in read(start, end):
            if held is not None:
                number += 1
                yield RawPage(
                    number=number, place=place, data=held.data, position=start, until=end, mark=start, line=held.line
                )
            held = cut
        number += 1
        held = held or Cut(0, 1, b"")
        yield RawPage(number=number, place=place, data=held.data, position=start, until=end, mark=end, line=held.line)

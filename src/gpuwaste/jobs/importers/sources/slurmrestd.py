"""Accounting through slurmrestd; pages are its JSON answers, as `sacct --json` also writes them."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from gpuwaste.jobs.importers.accounting_windows import AccountingPeriod, window_pages
from gpuwaste.jobs.importers.history_source import Notes, RawPage
from gpuwaste.jobs.importers.history_store import Resume
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.rest_jobs import parse_page
from gpuwaste.slurm.accounting.sacct_file import Cut
from gpuwaste.slurm.accounting.sacct_rows import BadRow

KIND: Final = "slurmrestd"


def parse(data: bytes, context: Mapping[str, str], notes: Notes) -> Iterator[JobRecord | BadRow]:
    """Read a page."""
    del notes
    return parse_page(data, context["cluster"]) if data else iter(())


class RawAnswers(Protocol):
    """The raw answers about accounting, as `RestClient` returns them."""

    def pages(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the raw answers for the runs that overlap [start, end], UTC seconds."""
        ...


class Slurmrestd:
    """Live accounting from slurmrestd."""

    kind = KIND
    size: int | None = None

    def __init__(self, slurm: RawAnswers, cluster: str, period: AccountingPeriod) -> None:
        self.cluster = cluster
        self.key = f"{KIND}:{cluster}"
        self.context: Mapping[str, str] = {"cluster": cluster, **period.context}
        self._slurm = slurm
        self._period = period

    def pages(self, resume: Resume | None) -> Iterator[RawPage]:
        """Query one window at a time; the client splits it further where an answer is too large."""
        return window_pages(self.key, self._period, self._window, resume)

    def _window(self, start: int, end: int) -> Iterator[Cut]:
        line = 1
        for data in self._slurm.pages(start, end):
            yield Cut(0, line, data)
            line += data.count(b"\n") + 1

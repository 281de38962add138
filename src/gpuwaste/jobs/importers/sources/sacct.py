"""sacct: files that `sacct -P` wrote, and live accounting, one window at a time."""

import io
from codecs import BOM_UTF8
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, Protocol

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.importers.accounting_windows import AccountingPeriod, window_pages
from gpuwaste.jobs.importers.file_pages import file_pages, first_lines, plain_size
from gpuwaste.jobs.importers.history_source import PAGE_B, Notes, RawPage
from gpuwaste.jobs.importers.history_store import Resume
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_file import Cut, columns_of, cut_pages, header_columns, hint
from gpuwaste.slurm.accounting.sacct_rows import BadRow, parse_sacct
from gpuwaste.slurm.clients.command_client import new_delimiter
from gpuwaste.slurm.formats.slurm_times import zone_of

KIND: Final = "sacct"


def parse(data: bytes, context: Mapping[str, str], notes: Notes) -> Iterator[JobRecord | BadRow]:
    """Read a page; header lines are counted, as concatenated files have several."""
    lines = _counted_headers(io.BytesIO(data), context["header"].encode(), notes)
    columns, delimiter = columns_of(context["columns"].split(",")), context["delimiter"].encode()
    return parse_sacct(lines, context["cluster"], columns, delimiter, zone_of(context["zone"]))


def _counted_headers(lines: Iterable[bytes], header: bytes, notes: Notes) -> Iterator[bytes]:
    for number, text in enumerate(lines):
        line = text if number else text.removeprefix(BOM_UTF8)
        notes["headers"] += bool(header) and line.startswith(header) and line.rstrip(b"\r\n") == header
        yield line


class SacctFile:
    """A file with any columns, named by its header or by `columns` (like sacct's --format), dates in `zone`."""

    kind = KIND

    def __init__(
        self,
        path: Path,
        cluster: str,
        *,
        delimiter: str = "|",
        columns: str = "",
        zone: str = "UTC",
        page_b: int = PAGE_B,
    ) -> None:
        """Find the columns. Raises UsageError, ParseError."""
        if not delimiter:
            raise UsageError("--delimiter: is empty")
        self._page_b = page_b
        self.path = path
        self.cluster = cluster
        self.key = f"{KIND}:{path.resolve()}"
        self.size = plain_size(path)
        self._delimiter = delimiter.encode()
        first, second = first_lines(path)
        try:
            found = header_columns(first, self._delimiter)
            named = columns_of(columns.split(",")) if found is None and columns else found
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error
        if named is None:
            raise UsageError(f"{path}: {hint(first, second)}")
        self._columns = named
        if not cluster and "Cluster" not in self._columns:
            raise UsageError(f"{path}: has no column Cluster: give it with --clusters NAME, or set common.cluster")
        zone_of(zone)
        self.context: Mapping[str, str] = {
            "cluster": cluster,
            "columns": ",".join(self._columns),
            "delimiter": delimiter,
            "zone": zone,
            "header": "" if found is None else first.removeprefix(BOM_UTF8).rstrip(b"\r\n").decode("utf-8", "replace"),
        }

    def pages(self, resume: Resume | None) -> Iterator[RawPage]:
        """Cut the file between jobs."""
        return file_pages(self.path, self.key, self._cut, resume, self.context)

    def _cut(self, lines: Iterable[bytes], position: int, line: int) -> Iterator[Cut]:
        return cut_pages(lines, self._columns, self._delimiter, self._page_b, position=position, line=line)


class RawAccounting(Protocol):
    """The raw text of accounting, as `CommandClient` returns it."""

    def accounting_columns(self) -> tuple[str, ...]:
        """Return the columns of the lines."""
        ...

    def accounting_lines(self, start: int, end: int, delimiter: bytes, cluster: str = "") -> Generator[bytes]:
        """Yield the lines of the runs that overlap [start, end], UTC seconds, of a cluster, "" for the own one."""
        ...


class SacctLive:
    """Live accounting from sacct, in UTC and epoch seconds."""

    kind = KIND
    size: int | None = None

    def __init__(self, slurm: RawAccounting, cluster: str, period: AccountingPeriod, *, asked: str = "") -> None:
        """Query the columns. Raises SlurmError.

        `cluster` is the cluster's name in the runs; `asked` is the one requested from slurmdbd, "" the host's own.
        """
        self.cluster = cluster
        self._asked = asked
        self.key = f"sacct-live:{cluster}"
        self._slurm = slurm
        self._period = period
        self._delimiter = new_delimiter()
        self._columns = slurm.accounting_columns()
        self.context: Mapping[str, str] = {
            "cluster": cluster,
            "columns": ",".join(self._columns),
            "delimiter": self._delimiter.decode(),
            "zone": "UTC",
            "header": "",
            **period.context,
        }

    def pages(self, resume: Resume | None) -> Iterator[RawPage]:
        """Query one window at a time."""
        return window_pages(self.key, self._period, self._window, resume)

    def _window(self, start: int, end: int) -> Iterator[Cut]:
        with closing(self._slurm.accounting_lines(start, end, self._delimiter, self._asked)) as lines:
            yield from cut_pages(lines, self._columns, self._delimiter, PAGE_B)

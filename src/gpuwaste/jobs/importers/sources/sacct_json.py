"""Files that `sacct --json` wrote."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from gpuwaste.jobs.importers.file_pages import plain_size
from gpuwaste.jobs.importers.history_source import PAGE_B, Notes, RawPage
from gpuwaste.jobs.importers.history_store import Resume
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.json_jobs import job_pages
from gpuwaste.slurm.accounting.rest_jobs import parse_page
from gpuwaste.slurm.accounting.sacct_file import Cut
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.formats.log_file import read_lines

KIND: Final = "sacct_json"


def parse(data: bytes, context: Mapping[str, str], notes: Notes) -> Iterator[JobRecord | BadRow]:
    """Read a page; each job names its cluster, the given one is for jobs that do not."""
    del notes
    for number, row in enumerate(parse_page(data, ""), 1):
        if isinstance(row, BadRow) or row.cluster:
            yield row
        elif context["cluster"]:
            yield replace(row, cluster=context["cluster"])
        else:
            yield BadRow(number, f"job {row.job_id}: no cluster, and --clusters names none", row.printed_id)


class SacctJson:
    """A file of JSON; its pages are documents of their own, with some of its jobs each."""

    kind = KIND

    def __init__(self, path: Path, cluster: str, *, page_b: int = PAGE_B) -> None:
        """Find the file. Raises UsageError."""
        self.path = path
        self.cluster = cluster
        self.key = f"sacct:{path.resolve()}"
        self.size = plain_size(path)
        self.context: Mapping[str, str] = {"cluster": cluster, "format": "json"}
        self._page_b = page_b

    def pages(self, resume: Resume | None) -> Iterator[RawPage]:
        """Yield the pieces after the last one that was stored; all where the content there differs."""
        start = 0
        if resume is not None and resume.context == self.context:
            stored = next((cut for cut in self._cuts() if cut.position == resume.position), None)
            start = resume.until if stored is not None and sha256(stored.data).hexdigest() == resume.digest else 0
        for number, cut in enumerate(self._cuts(), 1):
            until = cut.position + len(cut.data)
            if cut.position >= start:
                yield RawPage(
                    number=number,
                    place=self.key,
                    data=cut.data,
                    position=cut.position,
                    until=until,
                    mark=until,
                    line=cut.line,
                )

    def _cuts(self) -> Iterator[Cut]:
        return job_pages(read_lines(self.path), self._page_b)

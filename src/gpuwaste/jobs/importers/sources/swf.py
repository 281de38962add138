"""Logs in Standard Workload Format."""

import io
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Final

from gpuwaste.jobs.importers.file_pages import cut_lines, file_pages, plain_size
from gpuwaste.jobs.importers.history_source import PAGE_B, Notes, RawPage
from gpuwaste.jobs.importers.history_store import Resume
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.formats.log_file import read_lines
from gpuwaste.slurm.formats.swf_log import read_swf

KIND: Final = "swf"
_COUNTED: Final = ("users", "requested_time", "waits", "assumed_starts", "statuses", "partial", "other_status")


def parse(data: bytes, context: Mapping[str, str], notes: Notes) -> Iterator[JobRecord | BadRow]:
    """Read a page; the facts of the log are counted."""
    origin = int(context["origin"]) if context["origin"] else None
    facts, rows = read_swf(io.BytesIO(data), context["cluster"], origin)
    yield from rows
    notes.update({name: getattr(facts, name) for name in _COUNTED})


class SwfFile:
    """A log; its cluster is the file's name where it is not given."""

    kind = KIND

    def __init__(self, path: Path, cluster: str = "", *, page_b: int = PAGE_B) -> None:
        """Read the header. Raises UsageError, ParseError."""
        self._cut = partial(cut_lines, page_b=page_b)
        self.path = path
        self.cluster = cluster or path.name.partition(".swf")[0]
        self.key = f"{KIND}:{path.resolve()}"
        self.size = plain_size(path)
        facts, rows = read_swf(takewhile(_is_header, read_lines(path)), self.cluster)
        list(rows)
        origin = "" if facts.origin is None else str(facts.origin)
        self.context: Mapping[str, str] = {"cluster": self.cluster, "origin": origin}

    def pages(self, resume: Resume | None) -> Iterator[RawPage]:
        """Cut the file at any line."""
        return file_pages(self.path, self.key, self._cut, resume, self.context)


def _is_header(line: bytes) -> bool:
    return not line.strip() or line.lstrip().startswith(b";")

"""CSV files with a mapping."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.importers.file_pages import file_pages, first_line, plain_size
from gpuwaste.jobs.importers.history_source import PAGE_B, Notes, RawPage
from gpuwaste.jobs.importers.history_store import Resume
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_file import Cut
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.formats.csv_jobs import header_of, read_csv
from gpuwaste.slurm.formats.csv_mapping import load_mapping, parse_mapping

KIND: Final = "csv"
_MAX_PAGE_B: Final = 64 * 1024**2


def parse(data: bytes, context: Mapping[str, str], notes: Notes) -> Iterator[JobRecord | BadRow]:
    """Read a page with the mapping in its context."""
    mapped = parse_mapping(context["mapping"], "the mapping", context["zone"])
    first = context["header_line"].encode("utf-8", "surrogateescape")
    skip = data.startswith(first)
    notes["headers"] += skip
    return read_csv(io.BytesIO(data), context["cluster"], mapped, json.loads(context["header"]), skip=skip)


class CsvFile:
    """A file with a header; `zone` is for dates without one, where the mapping names none."""

    kind = KIND

    def __init__(
        self, path: Path, mapping: Path, cluster: str = "", *, zone: str = "UTC", page_b: int = PAGE_B
    ) -> None:
        """Read mapping and header. Raises UsageError, ConfigError, ParseError."""
        self._cut = partial(_cut, page_b=page_b)
        self.path = path
        self.key = f"{KIND}:{path.resolve()}"
        self.size = plain_size(path)
        text = load_mapping(mapping)
        mapped = parse_mapping(text, str(mapping), zone)
        self.cluster = mapped.cluster or cluster
        if not self.cluster:
            raise UsageError(f"{mapping}: give cluster = NAME in it, or --clusters NAME")
        first = first_line(path)
        try:
            header = header_of(first, mapped)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error
        self.context: Mapping[str, str] = {
            "cluster": self.cluster,
            "mapping": text,
            "zone": zone,
            "header": json.dumps(header),
            "header_line": first.decode("utf-8", "surrogateescape"),
        }

    def pages(self, resume: Resume | None) -> Iterator[RawPage]:
        """Cut the file between rows."""
        return file_pages(self.path, self.key, self._cut, resume, self.context)


def _cut(lines: Iterable[bytes], position: int, line: int, *, page_b: int) -> Iterator[Cut]:
    """Cut at line ends where every quote is closed; a newline may be inside quotes."""
    parts: list[bytes] = []
    size = quotes = 0
    for text in lines:
        parts.append(text)
        size += len(text)
        quotes += text.count(b'"')
        if size >= page_b and (quotes % 2 == 0 or size >= _MAX_PAGE_B):
            yield Cut(position, line, b"".join(parts))
            position, line = position + size, line + len(parts)
            parts, size, quotes = [], 0, 0
    if parts:
        yield Cut(position, line, b"".join(parts))

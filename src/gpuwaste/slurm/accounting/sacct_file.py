"""Files written by `sacct -P`: their columns, where to cut them into pages, and hints for a file without a header."""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import UsageError
from gpuwaste.slurm.accounting.sacct_row import RowIds
from gpuwaste.slurm.accounting.sacct_rows import ADMIN_COMMENT, FIELDS, MORE_FIELDS

MAX_PAGE_B: Final = 64 * 1024**2
_NAME = re.compile(r"[A-Za-z]{2,40}")
_KNOWN: Final = (
    *(*FIELDS, *MORE_FIELDS, "Cluster", "Elapsed", "ReqCPUS", "ReqNodes", "ReqGRES", "AllocGRES"),
    *("AveDiskRead", "AveDiskWrite"),
)
_ADVICE: Final = f"sacct -P --format={','.join(name for name in FIELDS if name != ADMIN_COMMENT)}"
_CANONICAL: Final = {name.lower(): name for name in _KNOWN}
# Columns with the same content as one that the reader knows, used where that one is missing.
_INSTEAD: Final = {"timelimit": "TimelimitRaw", "ncpus": "AllocCPUS", "allocnodes": "NNodes", "jobid": "JobIDRaw"}

_IDS: Final = frozenset({"jobid", "jobidraw"})
_SEVERAL: Final = 2
_NAMES = re.compile(r'"?\w{2,40}"?([^\w "%=]{1,8})"?\w{2,40}')
_PAIRS = re.compile(r"JobId=\S{1,40} {1,3}[\w:]{2,40}=")
_JOB_ID = re.compile(r"\bJobID(Raw)?\b", re.IGNORECASE)
_HOW: Final = "write it again with sacct -P (and --delimiter=TEXT where names hold a |)"
_OTHER: Final = "write accounting with sacct -P, or make a CSV file of it and import that with --csv-file and --mapping"
_SHOWN: Final = 4000


@dataclass(frozen=True, slots=True)
class Cut:
    """A piece of a file that holds complete runs: its bytes, their offset, and the number of its first line."""

    position: int
    line: int
    data: bytes


def columns_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return sacct's own names of the columns that a header or a --format lists (any case, %WIDTH).

    Raises UsageError where the columns lack the job of a row, or its submit time.
    """
    lower = [name.strip().partition("%")[0].lower() for name in names]
    columns = []
    for name in lower:
        instead = _INSTEAD.get(name, "")
        columns.append(instead if instead and instead.lower() not in lower else _CANONICAL.get(name, name))
    missing = [name for name in ("JobIDRaw", "Submit") if name not in columns]
    if missing:
        raise UsageError(f"sacct's columns lack {', '.join(missing)}: write the file again with {_ADVICE}")
    return tuple(columns)


def are_columns(names: Sequence[str]) -> bool:
    """Whether names are those of a header: JobID or JobIDRaw is among them, or several of sacct's other columns."""
    lower = [name.strip().lower() for name in names]
    known = sum(name in _CANONICAL or name in _INSTEAD for name in lower)
    return known >= _SEVERAL or not _IDS.isdisjoint(lower)


def header_columns(line: bytes, delimiter: bytes) -> tuple[str, ...] | None:
    """Return the columns of a header line; None where the line is not a header. Raises UsageError as `columns_of`."""
    names = line.removeprefix(BOM_UTF8).strip(b"\r\n").decode("utf-8", "replace").split(delimiter.decode())
    plain = all(_NAME.fullmatch(name) or not name for name in names)
    return columns_of(names) if plain and are_columns(names) else None


def cut_pages(
    lines: Iterable[bytes], columns: Sequence[str], delimiter: bytes, page_b: int, *, position: int = 0, line: int = 1
) -> Iterator[Cut]:
    """Cut lines into pieces of about `page_b` bytes, before a job's row that follows a complete row.

    Reading the pieces one by one gives the same as reading the file at once. A file with no such place is cut at
    64 MiB all the same. `position` and `line` are where the lines begin.
    """
    wanted, ids = len(columns) - 1, RowIds.of(columns, delimiter)

    def whole(text: bytes) -> bool:
        return text.count(delimiter) == wanted and ids.starts(text)

    parts: list[bytes] = []
    size = 0
    for text in lines:
        if size >= page_b:
            runs_end = whole(parts[-1]) and whole(text) and ids.begins_job(text)
            if runs_end or size >= MAX_PAGE_B:
                yield Cut(position, line, b"".join(parts))
                position, line = position + size, line + len(parts)
                parts, size = [], 0
        parts.append(text)
        size += len(text)
    if parts:
        yield Cut(position, line, b"".join(parts))


def hint(first: bytes, second: bytes) -> str:
    """Return a hint: what the first two lines seem to be, and what to do."""
    if first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "is UTF-16, as PowerShell writes it: convert it with iconv -f UTF-16 -t UTF-8, or " + _HOW
    text = first.removeprefix(BOM_UTF8)[:_SHOWN].decode("utf-8", "replace").strip()
    if len(text.split()) > 1 and second.strip() and not second.strip(b" -\r\n"):
        return "has columns padded with spaces and cut off, as sacct prints without -P: " + _HOW
    if _PAIRS.match(text):
        return f"has JobId=... pairs, as jobcomp/filetxt and scontrol write, not columns of sacct: {_OTHER}"
    names = _NAMES.match(text)
    if names is not None and are_columns(text.replace('"', "").split(names[1])):
        if _JOB_ID.search(text) is None:
            return f"has a header without JobID and JobIDRaw, which identify jobs: {_HOW}"
        parts = ascii(names[1]) if names[1].isprintable() else f"${names[1]!a}"  # quoted for a shell
        other = (
            "import quoted CSV with --csv-file and --mapping"
            if '"' in text
            else f"give the separator: --delimiter {parts}"
        )
        return f"has a header whose columns are separated by {parts}: {other}, or {_HOW}"
    return f"no header line: give the columns with --format and the separator with --delimiter, or {_HOW}"

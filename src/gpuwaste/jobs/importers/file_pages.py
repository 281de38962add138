"""A file as pages: read from its last stored page on, cut where the format allows it."""

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.importers.history_source import PAGE_B, RawPage
from gpuwaste.jobs.importers.history_store import Resume
from gpuwaste.slurm.accounting.sacct_file import Cut
from gpuwaste.slurm.formats.log_file import open_log, read_lines

Cutter = Callable[[Iterable[bytes], int, int], Iterator[Cut]]
"""cut(lines, position, line): pieces of the lines; the first begins at that byte and has that line number."""


def file_pages(
    path: Path, place: str, cut: Cutter, resume: Resume | None, context: Mapping[str, str]
) -> Iterator[RawPage]:
    """Yield the pages of a file from its last stored page on; none where nothing follows it.

    The page is identified by its digest; a file with other content there, or read with another `context`, is read from
    its beginning. Where the file is damaged, the pages before the damage are yielded first. Raises UsageError,
    ParseError.
    """
    lines = read_lines(path)
    position, line = 0, 1
    if resume is not None and resume.context == context:
        stored = _skip(lines, resume)
        following = next(lines, b"") if stored else b""
        if stored and not following:
            return
        if stored:
            # The last page is read again: more steps of its last run may follow.
            position, line, lines = resume.position, resume.line, chain(stored, [following], lines)
        else:
            lines = read_lines(path)
    damage: list[ParseError] = []
    for number, piece in enumerate(cut(_until_damage(lines, damage), position, line), 1):
        until = piece.position + len(piece.data)
        yield RawPage(
            number=number,
            place=place,
            data=piece.data,
            position=piece.position,
            until=until,
            mark=until,
            line=piece.line,
        )
    if damage:
        raise damage[0]


def cut_lines(lines: Iterable[bytes], position: int, line: int, *, page_b: int = PAGE_B) -> Iterator[Cut]:
    """Cut at any end of a line, after about `page_b` bytes."""
    parts: list[bytes] = []
    size = 0
    for text in lines:
        parts.append(text)
        size += len(text)
        if size >= page_b:
            yield Cut(position, line, b"".join(parts))
            position, line = position + size, line + len(parts)
            parts, size = [], 0
    if parts:
        yield Cut(position, line, b"".join(parts))


def first_line(path: Path) -> bytes:
    """Return the first line, empty where there is none. Raises UsageError, ParseError."""
    return first_lines(path)[0]


def first_lines(path: Path) -> tuple[bytes, bytes]:
    """Return the first two lines, empty where there are none. Raises UsageError, ParseError."""
    lines = read_lines(path)
    return next(lines, b""), next(lines, b"")


def _skip(lines: Iterator[bytes], resume: Resume) -> list[bytes]:
    """Read up to the end of the stored page and return its lines; none where the content differs."""
    at, parts = 0, list[bytes]()
    digest = hashlib.sha256()
    for text in lines:
        if at >= resume.position:
            parts.append(text)
            digest.update(text)
        at += len(text)
        if at >= resume.until:
            break
    return parts if at == resume.until and digest.hexdigest() == resume.digest else []


def _until_damage(lines: Iterable[bytes], damage: list[ParseError]) -> Iterator[bytes]:
    try:
        yield from lines
    except ParseError as error:
        damage.append(error)


def plain_size(path: Path) -> int | None:
    """Return the file's size; None where it is compressed, as positions go beyond its size. Raises UsageError."""
    with open_log(path) as file:
        return os.fstat(file.fileno()).st_size if isinstance(file, io.BufferedReader) else None

"""The JSON that `sacct --json` writes, of any size, as pieces that each hold some of its jobs.

A piece is a document of its own, {"jobs": [...]}, with the text of its jobs as it was written.
"""

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpuwaste.core.errors import ParseError, SlurmError
from gpuwaste.slurm.accounting.rest_value import error_text
from gpuwaste.slurm.accounting.sacct_file import Cut

_SPACES = re.compile("[ \t\r\n\ufeff]*")
_MAX_VALUE: Final = 64 * 1024**2  # characters of one job with its steps, or of what is in the file besides the jobs
_READ: Final = 1024**2


def looks_like_json(line: bytes) -> bool:
    """Whether a file with this first line is JSON, not rows."""
    return line.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in {b"{", b"["}


def job_pages(chunks: Iterable[bytes], page_b: int) -> Iterator[Cut]:
    """Yield pieces of about `page_b` bytes; `position` counts the bytes of the pieces, `line` their jobs from 1.

    Raises ParseError where the text is no JSON with jobs, after the pieces before; SlurmError where it holds an error.
    """
    items: list[str] = []
    size = position = 0
    line = 1
    for text in _JsonText(chunks).jobs():
        items.append(text)
        size += len(text)
        if size >= page_b:
            data = _piece(items)
            yield Cut(position, line, data)
            position, line, items, size = position + len(data), line + len(items), [], 0
    if items or not position:
        yield Cut(position, line, _piece(items))


def _piece(items: list[str]) -> bytes:
    return ('{"jobs": [\n' + ",\n".join(items) + "\n]}\n").encode("utf-8", "surrogateescape")


class _JsonText:
    """The text; only the value that is being read is held in memory."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._decoder = json.JSONDecoder(strict=False)
        self._text = ""
        self._at = 0
        self._ended = False

    def jobs(self) -> Iterator[str]:
        """Yield the text of each item of `jobs`, of one document after the other."""
        while self._next():
            yield from self._one()

    def _one(self) -> Iterator[str]:
        self._take("{")
        found, beside = False, dict[str, Any]()
        while self._sign() != "}":
            key = json.loads(self._value(), strict=False)
            self._take(":")
            if key == "jobs" and self._sign() == "[":
                found = True
                yield from self._items()
            else:
                beside[str(key)[:80]] = json.loads(self._value(), strict=False)
            if self._sign() == ",":
                self._at += 1
        self._take("}")
        message = error_text(beside)
        if message:
            raise SlurmError(message)
        if not found:
            raise ParseError(f"no list of jobs in the JSON, only {', '.join(beside)[:80] or 'an empty object'}")

    def _items(self) -> Iterator[str]:
        self._take("[")
        while self._sign() != "]":
            yield self._value()
            if self._sign() == ",":
                self._at += 1
        self._at += 1

    def _value(self) -> str:
        """Return the text of the next value. Raises ParseError."""
        self._sign()
        while True:
            try:
                _, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if not self._more():
                    raise ParseError(f"the JSON is cut off or damaged: {error}: write it again") from error
                continue
            length = end - self._at
            if end == len(self._text) and self._more():  # a number may continue in what was not read yet
                continue
            text, self._at = self._text[self._at : self._at + length], self._at + length
            return text

    def _take(self, sign: str) -> None:
        if self._sign() != sign:
            raise ParseError(f"invalid JSON: expected {sign!r}, found {self._text[self._at : self._at + 40]!r}")
        self._at += 1

    def _sign(self) -> str:
        """Return the next character that is no space."""
        if not self._next():
            raise ParseError("the JSON is cut off: write it again")
        return self._text[self._at]

    def _next(self) -> bool:
        """Go to the next character that is no space; false at the end."""
        while True:
            match = _SPACES.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return True
            if not self._more():
                return False

    def _more(self) -> bool:
        """Read at least as much again as is held, so that a long value is not parsed too often."""
        held = [self._text[self._at :]]
        wanted = max(_READ, len(held[0]))
        if len(held[0]) > _MAX_VALUE:
            raise ParseError(f"a value in the JSON is longer than {_MAX_VALUE} characters")
        read = 0
        while not self._ended and read < wanted:
            chunk = next(self._chunks, b"")
            self._ended = not chunk
            held.append(self._decode(chunk, self._ended))
            read += len(held[-1])
        self._text, self._at = "".join(held), 0
        return read > 0

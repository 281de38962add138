"""Comments of HLO text: `//` to the end of a line, `/* */` over lines, as XLA's lexer (hlo_lexer.cc) skips them."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from gpuwaste.core.errors import ParseError

_LEADING: Final = re.compile(rb"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_MARK: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|//|/\*', re.DOTALL)
"""A text in quotes, which may hold anything, or where a comment begins. Every match is taken once: linear."""


def without_leading(head: bytes) -> bytes:
    """Return the beginning of a file without the comments and blanks before its first word."""
    found = _LEADING.match(head)
    return head[found.end() :] if found else head


def without_comments(lines: Iterable[str]) -> Iterator[str]:
    """Yield as many lines, without their comments. Raises ParseError, with the line, for one that does not end."""
    begun = 0  # the line in which the open comment began; 0: none is open
    for number, line in enumerate(lines, 1):
        end = line.find("*/") + 2 if begun else 0
        if begun and end < 2:  # noqa: PLR2004 - the comment goes on
            yield ""
        elif "//" in line or "/*" in line or begun:
            text, is_open = _stripped(line, end)
            begun = number if is_open else 0
            yield text
        else:
            yield line
    if begun:
        raise ParseError(f"line {begun}: comment without its end")


def _stripped(line: str, start: int) -> tuple[str, bool]:
    """Return a line from `start` on without comments, and whether one is open at its end."""
    kept, place = [], start
    while (mark := _MARK.search(line, place)) is not None:
        place = mark.end()
        if mark[0].startswith('"'):
            continue
        kept.append(line[start : mark.start()])
        end = line.find("*/", place) if mark[0] == "/*" else len(line)
        if end < 0 or mark[0] == "//":
            return "".join(kept), end < 0
        start = place = end + 2
    return "".join([*kept, line[start:]]), False

"""Markdown as the forges read it -> Markdown as MkDocs reads it (Python-Markdown)."""

import re
from collections.abc import Iterator
from typing import Final

_HEAD: Final = re.compile(r"\A<!--.*?-->\s*", re.DOTALL)
_FENCE: Final = re.compile(r"^( *)```(\w*)")
_LIST: Final = re.compile(r"^(?:[-*]|1\.) ")
_NESTED: Final = re.compile(r"^ {2,3}(?=\S)")
_INDENT: Final = "    "


def translated(text: str) -> str:
    """Return a page's text for MkDocs.

    Forges begin a list or a table without an empty line before it, indent what belongs to a list item by two or three
    blanks, and take several words after the fence of a block. Python-Markdown needs the line, four blanks, one word;
    and MkDocs takes a page's title from its first line only, so a comment before that is left out.
    """
    return "\n".join(_lines(_HEAD.sub("", text).splitlines())) + "\n"


def _lines(lines: list[str]) -> Iterator[str]:
    fence: str | None = None  # the blanks before the block that is open
    before = ""
    for line in lines:
        found = _FENCE.match(line)
        if fence is not None:
            yield _moved(line, fence)
            fence = None if found and line.strip() == "```" else fence
        elif found:
            fence = found[1]
            yield f"{_INDENT if fence else ''}```{found[2]}"
        else:
            if _begins(line, before):
                yield ""
            yield _NESTED.sub(_INDENT, line)
        before = line


def _moved(line: str, blanks: str) -> str:
    """Return a line of a block; of a block in a list item with the indentation of the item."""
    return f"{_INDENT}{line.removeprefix(blanks)}".rstrip() if blanks else line


def _begins(line: str, before: str) -> bool:
    """Tell whether a line begins a list or a table directly after a line of text."""
    if not before.strip() or before.startswith((" ", "#")):
        return False
    if line.startswith("|"):
        return not before.startswith("|")
    return bool(_LIST.match(line)) and not re.match(r"(?:[-*]|\d+\.) ", before)

"""The install page as steps for Debian: its shell blocks in order, in the words of its table of the two systems.

A step is typed as it stands after its commands of Enterprise Linux were replaced by those of the other column.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.daemon_config import to_toml

PAGE: Final = Path(__file__).resolve().parents[2] / "docs/how-to/install.md"
_COLUMNS: Final = "## Debian and Ubuntu"
_REPOSITORY: Final = "its line on each host"
_COMMANDS: Final = ("dnf ", "createrepo_c ", "cp ")
"""What a cell of the table begins with that is a command and no file."""
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE: Final = re.compile(r"(?:in|to|write) `(/etc/[^`]+)`:\n\n$", re.IGNORECASE)
_ROW: Final = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_CODE: Final = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Step:
    """A block of the page: a shell script, or text for the file that the words before it name."""

    script: str = ""
    file: str = ""
    text: str = ""


def section(page: str, heading: str) -> str:
    """Return what stands below a heading. Raises GpuwasteError."""
    found = re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    if not found:
        raise GpuwasteError(f"field: {PAGE.name} has no section {heading!r}, which tools/field uses")
    return found[1]


def steps(page: str, heading: str) -> list[Step]:
    """Return the steps below a heading, for Debian. Raises GpuwasteError at a block that is neither."""
    part = section(page, heading)
    words = commands(page)
    found = []
    for block in _BLOCK.finditer(part):
        kind, body = block.groups()
        if kind == "sh":
            found.append(Step(script=in_debian(body, words)))
            continue
        named = _FILE.search(part[: block.start()])
        if not named:
            raise GpuwasteError(f"field: {PAGE.name}, {heading}: the text before this block names no file:\n{body}")
        if f"`{named[1]}`" == rows(page)[_REPOSITORY][0]:
            found += _repository(page)
        else:
            found.append(Step(file=named[1], text=body))
    return found


def _repository(page: str) -> list[Step]:
    """Return the steps by which a host gets to know the repository."""
    codes = _CODE.findall(rows(page)[_REPOSITORY][1])
    if len(codes) != 3:  # noqa: PLR2004 file, line, command
        raise GpuwasteError(f"field: {PAGE.name}: row {_REPOSITORY!r} has not file, line and command: {codes}")
    file, line, command = codes
    return [Step(file=file, text=f"{line}\n"), Step(script=command)]


def command(page: str, row: str) -> str:
    """Return the command of Debian in a row of the table."""
    return str(_CODE.findall(rows(page)[row][1])[0])


def rows(page: str) -> dict[str, tuple[str, str]]:
    """Return the page's table of the two systems: for each step the cell of Enterprise Linux and that of Debian."""
    return {step: (old, new) for step, old, new in _ROW.findall(section(page, _COLUMNS.removeprefix("## ")))}


def commands(page: str) -> dict[str, str]:
    """Return what begins commands of Enterprise Linux, and what begins the same ones on Debian."""
    found = {}
    for old, new in rows(page).values():
        left, right = _CODE.findall(old), _CODE.findall(new)
        if left and right and left[0].startswith(_COMMANDS):
            words, others = left[0].split(), right[0].split()
            while words and others and words[-1] == others[-1]:
                words.pop()
                others.pop()
            found[" ".join(words)] = " ".join(others)
    return found


def in_debian(script: str, words: Mapping[str, str]) -> str:
    """Return a script with the commands of the other column."""
    for old, new in sorted(words.items(), key=lambda pair: -len(pair[0])):
        script = re.sub(rf"^{re.escape(old)}(?=\s)", new, script, flags=re.MULTILINE)
    if left := re.search(r"^.*\b(dnf|rpm|yum)\b.*$", script, re.MULTILINE):
        raise GpuwasteError(f"field: {PAGE.name} has no Debian command for: {left[0]}")
    return script


def with_keys(text: str, block: str) -> str:
    """Return a file of TOML with the block's keys set below the sections that it has, as an editor would write them."""
    settings: Mapping[str, Mapping[str, Any]] = tomllib.loads(block)
    text = f"\n{text}"
    for name, keys in settings.items():
        if f"\n[{name}]\n" not in text:
            text += f"\n[{name}]\n"
        text = text.replace(f"\n[{name}]\n", f"\n{to_toml({name: keys})}", 1)
    return text.removeprefix("\n")

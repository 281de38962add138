"""The file of answers, and how two of them differ."""

import difflib
import json
import lzma
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_SHOWN_LINES: Final = 40
_SHOWN_CHARACTERS: Final = 240
_HELP: Final = "command/help/"


def write(path: Path, answers: Mapping[str, str]) -> None:
    """Write the answers: the same bytes for the same answers."""
    text = json.dumps({"python": PYTHON, "answers": answers}, sort_keys=True)
    path.write_bytes(lzma.compress(text.encode("ascii"), preset=9 | lzma.PRESET_EXTREME))


def read(path: Path) -> dict[str, str]:
    """Return the answers, without those that argparse words otherwise in another version of Python."""
    found = json.loads(lzma.decompress(path.read_bytes()))
    answers: dict[str, str] = found["answers"]
    if found["python"] == PYTHON:
        return answers
    return {name: text for name, text in answers.items() if not name.startswith(_HELP)}


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield for each answer that is not the same its name and a short unified difference."""
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"=== {name}: no such answer any more\n"
        elif name not in before:
            if not name.startswith(_HELP) or any(known.startswith(_HELP) for known in before):
                yield f"=== {name}: an answer that is not kept\n"
        elif before[name] != after[name]:
            yield f"=== {name}\n{_difference(before[name], after[name])}"


def _difference(before: str, after: str) -> str:
    first, second = _lines(before), _lines(after)
    if first == second:  # the same document in other bytes
        first, second = before.splitlines(), after.splitlines()
    if first == second:
        first, second = [repr(before[-_SHOWN_CHARACTERS:])], [repr(after[-_SHOWN_CHARACTERS:])]
    lines = [line[:_SHOWN_CHARACTERS] for line in difflib.unified_diff(first, second, "kept", "now", n=1, lineterm="")]
    more = [f"... {len(lines) - _SHOWN_LINES} lines more"] if len(lines) > _SHOWN_LINES else []
    return "".join(f"{line}\n" for line in [*lines[:_SHOWN_LINES], *more])


def _lines(text: str) -> list[str]:
    """Return the lines of an answer, its JSON one value a line, its HTML one element a line."""
    found = []
    for line in text.splitlines():
        try:
            found += json.dumps(json.loads(line), indent=1).splitlines() if line[:1] in {"{", "["} else [line]
        except ValueError:
            found.append(line)
    return [part for line in found for part in line.replace("><", ">\n<").splitlines()]

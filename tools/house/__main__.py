"""Print the figures of the house for each room and in all.

python -m tools.house [--pairs] [--root FOLDER]

Of each room: modules of Python, lines of Python and SQL, the share of modules under 40 lines and of lines before a
module's first definition, class names used twice, record types, pairs of them that are alike, file names used twice.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tabulate import tabulate

from tools.house.modules import ClassText, Module, Record, classes, like_pairs, modules, records

SMALL_LINES: Final = 40
NUMBER: Final = re.compile(r"\b(int|Int64|Whole)\b")
TEXT: Final = re.compile(r"\bstr\b")
JOB_ID: Final = re.compile(r"(raw_?)?(run_)?job_?(id)?(_raw)?|(run|raw)_id")
PRINTED_ID: Final = re.compile(r"job_?(id)?|printed(_?job)?(_?id)?|(run|shown)_id")
START: Final = re.compile(r"(run_|job_|slurm_)?(start|started|begun|began)(_s|_utc|_time)?")
HEADERS: Final = ("room", "modules", "lines", "small", "before", "names twice", "records", "pairs", "files twice")


def spellings(found: Sequence[Record]) -> dict[str, Counter[str]]:
    """Return how often the fields of record types spell a run's raw id, its start (beside an id) and its printed id."""
    count: dict[str, Counter[str]] = {"job_id": Counter(), "start": Counter(), "printed_id": Counter()}
    for record in found:
        own = record.text.fields
        raw = [name for name, kind in own.items() if JOB_ID.fullmatch(name) and NUMBER.search(kind)]
        printed = [name for name, kind in own.items() if PRINTED_ID.fullmatch(name) and TEXT.search(kind)]
        count["job_id"].update(raw)
        count["printed_id"].update(printed)
        if raw or printed:
            count["start"].update(name for name in own if START.fullmatch(name))
    return count


def main(arguments: Sequence[str]) -> int:
    """Print the table, then the spellings of the run key, then the pairs where asked to."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", action="store_true", help="list the pairs of record types that share most fields")
    parser.add_argument("--root", type=Path, default=Path(), help="the folder with src, agent and models")
    options = parser.parse_args(arguments)
    read = modules(options.root)
    found = [text for module in read for text in classes(module)]
    kinds = records(found)
    pairs = like_pairs(kinds)
    rows = [_row(room, read, found, kinds, pairs) for room in (*sorted({module.room for module in read}), "")]
    lines = [tabulate(rows, HEADERS, floatfmt=".1f")]
    for key, names in spellings(kinds).items():
        lines.append(f"{key} is spelled: " + ", ".join(f"{name} ({times})" for name, times in names.most_common()))
    if options.pairs:
        lines += sorted(f"{_place(one)} | {_place(other)} | {common} alike" for one, other, common in pairs)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _row(
    room: str,
    read: Sequence[Module],
    found: Sequence[ClassText],
    kinds: Sequence[Record],
    pairs: Sequence[tuple[Record, Record, int]],
) -> list[object]:
    """Return a room's figures; "" is the whole house. What two rooms share counts in each of them."""
    here = [module for module in read if room in {"", module.room}]
    python = [module for module in here if module.tree is not None]
    small = sum(module.lines < SMALL_LINES for module in python)
    before, lines = sum(module.before for module in python), sum(module.lines for module in python)
    return [
        room or "in all",
        len(python),
        sum(module.lines for module in here),
        f"{small / max(len(python), 1):.0%}",
        f"{before / max(lines, 1):.0%}",
        _twice(room, [(text.name, text.module.room) for text in found]),
        sum(room in {"", kind.text.module.room} for kind in kinds),
        sum(room in {"", one.text.module.room, other.text.module.room} for one, other, _ in pairs),
        _twice(room, [(module.path.name, module.room) for module in read if module.path.name != "__init__.py"]),
    ]


def _twice(room: str, names: Sequence[tuple[str, str]]) -> int:
    count = Counter(name for name, _ in names)
    return len({name for name, place in names if count[name] > 1 and room in {"", place}})


def _place(record: Record) -> str:
    return f"{record.text.name} {record.text.module.path} ({len(record.fields)})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

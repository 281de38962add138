"""Rows of sacct with more separators than columns: whose text they are in.

Only a column of free text can hold a separator. The other columns have shapes that tell where they are; a row that
fits in several ways is not read.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, islice
from typing import Final

FREE: Final = frozenset(
    {"JobName", "SubmitLine", "AdminComment", "Comment", "systemcomment", "workdir", "extra", "Constraints"}
    | {"stdin", "stdout", "stderr", "container"}
)
_TIME = r"|\d{1,12}|\d{4}-\d\d-\d\d[T ][\d:+Z-]{1,20}|Unknown|None|N/A"
_AMOUNT = r"|[\d:.-]{1,24}|UNLIMITED|Partition_Limit|INVALID"
_TRES = r"|[\w./-]+(?::[\w.-]+)*=[\w.]+(?:,[\w./-]+(?::[\w.-]+)*=[\w.]+)*"
_SHAPES: Final = {
    "JobIDRaw": r"\d{1,10}(?:\.[\w+]{1,32})?",
    "State": r"|[A-Z_]{1,20}\+?(?: by \d{1,10})?",
    "ExitCode": r"|\d{1,10}:\d{1,10}",
    "ReqMem": r"|\?|[\d.]{1,24}[KMGTP]?[nc]?",
    "MaxRSS": r"|[\d.]{1,24}[KMGTP]?",
    **dict.fromkeys(("Submit", "Start", "End", "Eligible"), _TIME),
    **dict.fromkeys(("ElapsedRaw", "Elapsed", "TimelimitRaw", "TotalCPU", "Suspended"), _AMOUNT),
    **dict.fromkeys(
        ("NNodes", "AllocCPUS", "ReqCPUS", "ReqNodes", "UID", "Restarts", "Priority", "NTasks"), r"|\d{1,15}"
    ),
    "Flags": r"[A-Za-z_,]{0,200}",
    **dict.fromkeys(("ReqTRES", "AllocTRES"), _TRES),
}
_SHAPED: Final = {name: re.compile(shape, re.ASCII) for name, shape in _SHAPES.items()}
_SUBMITS = re.compile(r"(?:/\S{0,200}/)?(?:sbatch|srun|salloc)(?:\s|$)")
_MAX_SURPLUS: Final = 200
_MAX_WAYS: Final = 1000


def settle(parts: Sequence[str], columns: Sequence[str], delimiter: str) -> list[str] | None:
    """Return one text for each column; None where the parts fit in no way, or in several."""
    surplus = len(parts) - len(columns)
    blocks = _blocks(tuple(columns))
    places = [place for place, (free, _) in enumerate(blocks) if free]
    if not places or not 0 <= surplus <= _MAX_SURPLUS:
        return None
    found: list[list[str]] = []
    for ways, extra in enumerate(_shares(surplus, len(places))):
        if ways >= _MAX_WAYS:
            return None
        values = _divided(parts, blocks, dict(zip(places, extra, strict=True)), delimiter)
        if values is not None:
            found.append(values)
            if len(found) > 1:
                return None
    return found[0] if found else None


def has_free(columns: Sequence[str], before: str) -> bool:
    """Whether a column may hold a separator, and none of those left of the column `before` does."""
    free = [place for place, name in enumerate(columns) if name in FREE]
    return bool(free) and free[0] > columns.index(before)


@cache
def _blocks(columns: tuple[str, ...]) -> list[tuple[bool, tuple[str, ...]]]:
    """Return the columns in runs of free ones and others."""
    return [(free, tuple(names)) for free, names in groupby(columns, key=FREE.__contains__)]


def _shares(surplus: int, blocks: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to share the surplus among so many blocks."""
    if blocks == 1:
        yield (surplus,)
        return
    for first in range(surplus + 1):
        for rest in _shares(surplus - first, blocks - 1):
            yield (first, *rest)


def _divided(
    parts: Sequence[str], blocks: Sequence[tuple[bool, tuple[str, ...]]], extra: dict[int, int], delimiter: str
) -> list[str] | None:
    rest = iter(parts)
    values: list[str] = []
    for place, (free, names) in enumerate(blocks):
        own = list(islice(rest, len(names) + extra.get(place, 0)))
        if free:
            values += _texts(own, names, delimiter)
        elif all(name not in _SHAPED or _SHAPED[name].fullmatch(text) for name, text in zip(names, own, strict=True)):
            values += own
        else:
            return None
    return values


def _texts(parts: list[str], names: tuple[str, ...], delimiter: str) -> list[str]:
    """Divide a block of free columns: a submit line begins with its command, the rest is the first one's."""
    surplus = len(parts) - len(names)
    place = names.index("SubmitLine") if "SubmitLine" in names else 0
    begins = next((at for at in range(place, place + surplus + 1) if _SUBMITS.match(parts[at])), place + surplus)
    first = begins - place if place else surplus  # how many further parts the first column has
    parts = [delimiter.join(parts[: first + 1]), *parts[first + 1 :]]
    end = len(parts) - (len(names) - place - 1)  # columns right of the submit line have a part each
    return [*parts[:place], delimiter.join(parts[place:end]), *parts[end:]]

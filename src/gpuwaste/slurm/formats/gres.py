"""GRES strings of `scontrol show job -d` and `show node -d`: which positions of a node's GPU list, and how many shards.

A position (Slurm prints `IDX`) counts the node's GPUs in the order of its gres list. It is neither a minor number nor
an NVML index.
"""

import re
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.formats.hostlist import split_outside
from gpuwaste.slurm.submit.gpu_items import count_of

_MAX_POSITION: Final = 1023  # MAX_GRES_BITMAP of Slurm
_MAX_SHARES: Final = 24_000  # characters
_ABSENT: Final = frozenset({"", "(null)", "N/A"})
_ENTRY = re.compile(r"([A-Za-z][\w.\-/]*)((?::[^:()]+)*)((?:\([^()]*\))*)")
_SHARES = re.compile(r"(?:-|\d{1,9})/\d{1,9}(?:,(?:-|\d{1,9})/\d{1,9})*", re.ASCII)
_DETAIL = re.compile(r"\((?:([A-Z]+):)?([^()]*)\)")


@dataclass(frozen=True, slots=True)
class GresEntry:
    """One entry: `gpu:a100:2(IDX:0-1)`. `positions` is None where no list is printed, () where an empty one is."""

    name: str
    type: str
    count: int | None
    positions: tuple[int, ...] | None = None

    @property
    def number(self) -> int:
        """How many: without a printed count as many as positions, else one, as Slurm takes `gpu:a100` of a node."""
        return (1 if self.positions is None else len(self.positions)) if self.count is None else self.count


@dataclass(frozen=True, slots=True)
class GresOnNode:
    """What one job holds on one node.

    `positions` are those of the GPUs, else of the GPUs whose shards or MPS the job holds, where Slurm prints them.
    `gpus` is the printed count: larger than `positions` where Slurm names no device.
    """

    positions: tuple[int, ...] = ()
    gpus: int = 0
    types: tuple[str, ...] = ()
    shards: int = 0


def parse_gres(text: str) -> list[GresEntry]:
    """Return the entries of one GRES list. Raises ParseError."""
    text = text.strip()
    if text in _ABSENT:
        return []
    return [_entry(part.strip(), text) for part in split_outside(text, "(", ")")]


def job_gres_on_node(text: str) -> GresOnNode:
    """Sum up the `GRES=` of one `Nodes=` line: positions of several types are one set. Raises ParseError."""
    entries = parse_gres(text)
    gpus = [entry for entry in entries if entry.name == "gpu"]
    shared = [entry for entry in entries if entry.name in {"shard", "mps"}]
    positions = sorted({position for entry in gpus or shared for position in entry.positions or ()})
    return GresOnNode(
        positions=tuple(positions),
        gpus=sum(entry.number for entry in gpus),
        types=tuple(sorted({entry.type for entry in gpus if entry.type})),
        shards=sum(entry.number for entry in shared if entry.name == "shard"),
    )


def parse_positions(text: str) -> tuple[int, ...]:
    """Read `0-1,3`; an empty text and N/A are no positions. Raises ParseError."""
    if text.strip() in _ABSENT:
        return ()
    found: set[int] = set()
    for item in text.split(","):
        low, dash, high = item.strip().partition("-")
        first = _position(low, text)
        last = _position(high, text) if dash else first
        if last < first:
            raise ParseError(f"GRES positions {text[:40]!r}: the range {item!r} is reversed")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def _position(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 4 and int(digits) <= _MAX_POSITION):  # noqa: PLR2004
        raise ParseError(f"GRES positions {text[:40]!r}: {digits[:20]!r} is not a number from 0 to {_MAX_POSITION}")
    return int(digits)


def _entry(part: str, whole: str) -> GresEntry:
    match = _ENTRY.fullmatch(part)
    if match is None:
        raise ParseError(f"GRES {whole[:60]!r}: cannot read {part[:40]!r}")
    words = match[2].split(":")[1:]
    count = count_of(words[-1]) if words else None
    if words and count is not None:
        words.pop()
    positions: tuple[int, ...] | None = None
    for label, detail in _DETAIL.findall(match[3]):
        if label == "IDX":
            positions = parse_positions(detail)
        elif not label and len(detail) <= _MAX_SHARES and _SHARES.fullmatch(detail):
            positions = _shared_positions(detail)
    return GresEntry(match[1], ":".join(words), count, positions)


def _shared_positions(detail: str) -> tuple[int, ...]:
    """Read the shares of each GPU, used/all, as 24.11 and later print them: `2/4,0/4` is position 0."""
    used = (item.partition("/")[0] for item in detail.split(",")[: _MAX_POSITION + 1])
    return tuple(position for position, count in enumerate(used) if count.strip("-0"))

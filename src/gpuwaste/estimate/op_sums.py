"""A program as sums by kind of operation and element type: all that the time model sees of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwaste.estimate.program import Program


@dataclass(frozen=True, slots=True)
class OpSum:
    """Executions in one step, their FLOPs, and the bytes they read and write."""

    count: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: "OpSum") -> "OpSum":
        return OpSum(self.count + other.count, self.flops + other.flops, self.bytes + other.bytes)


def op_sums(program: Program) -> dict[str, OpSum]:
    """Return the sums of one step keyed by "kind/dtype" ("mm/bf16"), sorted; loops count trip by trip."""
    sums: dict[tuple[str, str], list[float]] = {}
    for op in program.ops:
        row = sums.setdefault((op.kind, op.dtype), [0.0, 0.0, 0.0])
        row[0] += op.trips
        row[1] += op.trips * op.flops
        row[2] += op.trips * (op.bytes_read + op.bytes_written)
    return {f"{kind}/{dtype}": OpSum(*row) for (kind, dtype), row in sorted(sums.items())}


def by_kind(sums: Mapping[str, OpSum]) -> dict[str, OpSum]:
    """Return the sums with the element types of a kind added up."""
    merged: dict[str, OpSum] = {}
    for key, found in sums.items():
        kind = key.partition("/")[0]
        merged[kind] = merged.get(kind, OpSum()) + found
    return merged

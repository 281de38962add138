"""WaitTable: how long jobs of each shape are expected to wait, from the hub's latest simulation.

A shape is a partition, a type of GPU ("" for any), a number of GPUs and a limit; a request gets the waits of the next
larger shape. Waits count from `at`, UTC seconds. Lookups cost microseconds, whatever the table's size.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from msgspec import Meta, Struct

MAX_AGE_S: Final = 300  # an older table is not used: queues change
MAX_ROWS: Final = 1024
_Seconds = Annotated[int, Meta(ge=0, le=1 << 40, description="Seconds.")]
_Name = Annotated[str, Meta(max_length=256)]


class WaitRow(Struct, kw_only=True, frozen=True):
    """The wait of one shape: seconds that 10, 50 and 90 of 100 such jobs wait at most."""

    partition: _Name
    gpu_type: Annotated[_Name, Meta(description="Empty: any type.")]
    gpus: Annotated[int, Meta(ge=1, le=1 << 20)]
    limit_s: _Seconds
    p10: _Seconds
    p50: _Seconds
    p90: _Seconds


@dataclass(frozen=True)
class WaitTable:
    """The rows of one instant; threads may share it."""

    at: int
    rows: Sequence[WaitRow]
    _shapes: dict[tuple[str, str], dict[int, list[WaitRow]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sort the rows by shape, sizes and limits rising."""
        shapes: dict[tuple[str, str], dict[int, list[WaitRow]]] = {}
        for row in sorted(self.rows, key=lambda row: (row.gpus, row.limit_s)):
            shapes.setdefault((row.partition, row.gpu_type), {}).setdefault(row.gpus, []).append(row)
        object.__setattr__(self, "_shapes", shapes)

    def fresh(self, now: int) -> bool:
        """Return whether the table is recent enough to use at a UTC second."""
        return 0 <= now - self.at <= MAX_AGE_S

    def of(self, partitions: str, gpu_type: str, gpus: int, limit_s: int | None) -> "tuple[WaitRow, ...]":
        """Return the rows for a request: its own limit's first, then those of shorter limits; () where none fits.

        With several partitions (a,b), use the one in which the request is expected to start first.
        """
        found = (self._in(name, gpu_type, gpus, limit_s) for name in partitions.split(","))
        return min((rows for rows in found if rows), key=lambda rows: rows[0].p50, default=())

    def _in(self, partition: str, gpu_type: str, gpus: int, limit_s: int | None) -> "tuple[WaitRow, ...]":
        sizes = self._shapes.get((partition, gpu_type), {})
        size = next((size for size in sizes if size >= gpus), None)
        if size is None or not limit_s:
            return ()
        rows = sizes[size]
        place = bisect_left(rows, limit_s, key=lambda row: row.limit_s)
        return tuple(rows[place::-1]) if place < len(rows) else ()

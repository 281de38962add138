"""The samples of one run, added up by GPU and slot of time, as the columns that travel."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from gpuwaste.ledger.curves.curve_types import QUANTITIES, CurveSeries, GpuCurves
from gpuwaste.ledger.sample import Sample

_DIGITS: Final = {"util_pct": 2, "sm_pct": 2, "mem_used_b": 0, "power_w": 1}
Cell = tuple[int, float, float, float]
"""How many values, their sum, the least and the greatest."""


class JobSlots:
    """Adds up by slots of `width_us` after `since_us`; of 1 microsecond each sample is a slot of its own."""

    def __init__(self, since_us: int, width_us: int) -> None:
        self._since_us = since_us
        self._width_us = width_us
        self._cells: dict[tuple[str, str], dict[int, dict[str, Cell]]] = {}
        self._facts: dict[tuple[str, str], tuple[int | None, int | None]] = {}

    def add_sample(self, sample: Sample) -> None:
        """Add a sample that was not folded yet."""
        values = {
            "util_pct": sample.util_pct,
            "sm_pct": None if sample.sm_ratio is None else sample.sm_ratio * 100,
            "mem_used_b": sample.mem_used_b,
            "power_w": None if sample.power_mw is None else sample.power_mw / 1000,
        }
        cells = {name: (1, value, value, value) for name, value in values.items() if value is not None}
        slot = (sample.t_utc_us - self._since_us - 1) // self._width_us
        self._add((sample.gpu_uuid, sample.instance), slot, cells, (sample.mem_total_b, sample.power_limit_mw))

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Add a row of query job_samples."""
        cells = {
            name: (row[f"{name}_n"], row[f"{name}_sum"], row[f"{name}_min"], row[f"{name}_max"])
            for name in QUANTITIES
            if row[f"{name}_n"]
        }
        self._add((row["uuid"], row["instance"]), row["slot"], cells, (row["mem_total_b"], row["power_limit_mw"]))

    def columns(self, gap_us: int) -> tuple[list[int], list[GpuCurves]]:
        """Return the instants, UTC milliseconds, and the GPUs' series; None stands where nothing is known.

        Samples that are further apart than `gap_us` get a None between them; slots of more than a sample are all there
        from the first to the last.
        """
        used = sorted({slot for slots in self._cells.values() for slot in slots})
        instants = self._instants(used, gap_us)
        t_ms = [round((self._since_us + 1 + (slot + 0.5) * self._width_us) / 1000) for slot in instants]
        return t_ms, [self._gpu(gpu, instants) for gpu in sorted(self._cells)]

    def _instants(self, used: list[int], gap_us: int) -> list[int]:
        if not used or self._width_us > 1:
            return list(range(used[0], used[-1] + 1)) if used else []
        gaps = [before + gap_us // 2 for before, after in pairwise(used) if after - before > gap_us]
        return sorted({*used, *gaps})

    def _add(
        self, gpu: tuple[str, str], slot: int, cells: dict[str, Cell], facts: tuple[int | None, int | None]
    ) -> None:
        into = self._cells.setdefault(gpu, {}).setdefault(slot, {})
        for name, (count, total, least, most) in cells.items():
            old = into.get(name, (0, 0.0, math.inf, -math.inf))
            into[name] = (old[0] + count, old[1] + total, min(old[2], least), max(old[3], most))
        known = self._facts.get(gpu, (None, None))
        self._facts[gpu] = (facts[0] or known[0], facts[1] or known[1])

    def _gpu(self, gpu: tuple[str, str], instants: list[int]) -> GpuCurves:
        slots = self._cells[gpu]
        mem_total_b, limit_mw = self._facts[gpu]
        return GpuCurves(
            gpu_uuid=gpu[0],
            instance=gpu[1],
            mem_total_b=mem_total_b,
            power_limit_w=None if limit_mw is None else limit_mw / 1000,
            **{name: self._series(name, [slots.get(slot, {}).get(name) for slot in instants]) for name in QUANTITIES},
        )

    def _series(self, name: str, cells: list[Cell | None]) -> CurveSeries | None:
        if not any(cells):
            return None

        def column(of: Any) -> list[float | None]:
            return [None if cell is None else round(of(cell), _DIGITS[name] or None) for cell in cells]

        mean = column(lambda cell: cell[1] / cell[0])
        if self._width_us == 1:
            return CurveSeries(mean=mean)
        return CurveSeries(mean=mean, min=column(lambda cell: cell[2]), max=column(lambda cell: cell[3]))

"""The tables of a report for people: jobs, users, clusters; GPU-time in the report's unit, columns by the width."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.core.units import GpuTimeUnit
from gpuwaste.ledger.energy.energy_text import energy_cells, energy_headers
from gpuwaste.ledger.reports.report_types import ClusterRow, GpuTime, JobRow, UserRow
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, percent, share, state_code, uncut

STATES: Final = "STATE as in squeue: {}."
_ROWS: Final = 20
_TYPE: Final = 16


def job_table(
    rows: Sequence[JobRow], look: Look, unit: GpuTimeUnit, totals: GpuTime, left_out: int, *, user: bool = False
) -> list[str]:
    """Return the table of jobs, cut to one screen; with a legend of the states in it."""
    shown = rows[:_ROWS]
    if not shown:
        return ["  none"]
    states = sorted({row.state for row in shown})
    columns = [
        Column("JOBID", [uncut(row.printed_id) for row in shown], left=True),
        Column("STATE", [state_code(row.state) for row in shown], left=True, rank=4),
        Column("GPUS", [str(row.gpus) for row in shown], rank=3),
        *_gpu_time(shown, unit, totals),
        Column("CPU USE", [percent(row.cpu_efficiency) for row in shown], rank=7),
        Column("MEMORY USE", [percent(row.memory_efficiency) for row in shown], rank=8),
    ]
    if any(row.gpu_type for row in shown):
        columns.append(Column("GPU TYPE", [row.gpu_type[:_TYPE] for row in shown], left=True, rank=6))
    columns.append(Column("NAME", [f"{row.user}: {row.name}" if user else row.name for row in shown]))
    lines = look.fitted(columns)
    if more := left_out + max(0, len(rows) - _ROWS):
        lines.append(f"  ... and {more} more with less waste (--parsable prints all)")
    if look.header and any("STATE" in line for line in lines[:1]):
        named = ", ".join(f"{state_code(state)} {state.lower().replace('_', ' ')}" for state in states)
        lines += look.bullet(STATES.format(named))
    return lines


def cluster_table(
    rows: Sequence[ClusterRow], look: Look, unit: GpuTimeUnit, totals: GpuTime, *, energy: bool
) -> list[str]:
    """Return the table of clusters; with `energy` also their energy and cost, if known."""
    return look.fitted([*_sums(rows, unit, totals, energy=energy), Column("CLUSTER", [row.cluster for row in rows])])


def user_table(rows: Sequence[UserRow], look: Look, unit: GpuTimeUnit, totals: GpuTime, *, energy: bool) -> list[str]:
    """Return the table of users, cut to one screen; with `energy` also their energy and cost, if known."""
    shown = rows[:_ROWS]
    columns = [
        *_sums(shown, unit, totals, energy=energy),
        Column("UNDER-USED JOBS", [str(row.under_used.jobs) for row in shown], rank=7),
        Column("USER", [row.user for row in shown]),
    ]
    more = len(rows) - _ROWS
    return [*look.fitted(columns), *([f"  ... and {more} more users with less waste"] if more > 0 else [])]


def mean_cell(row: GpuTime) -> str:
    """Return the mean utilization; unknown where there is none."""
    mean = row.mean_util_pct
    return UNKNOWN if mean is None else percent(mean / 100)


def wasted_share(row: GpuTime) -> float | None:
    """Return the wasted share of the allocated time; None if no time is known."""
    return share(row.wasted_s, row.gpu_s) if row.coverage else None


def _sums(
    rows: Sequence[ClusterRow] | Sequence[UserRow], unit: GpuTimeUnit, totals: GpuTime, *, energy: bool
) -> list[Column]:
    headers = energy_headers(row.energy for row in rows) if energy else ()
    cells = zip(*(energy_cells(row.energy, headers) for row in rows), strict=True) if headers else ()
    return [
        Column("JOBS", [str(row.jobs) for row in rows]),
        Column("RUNNING", [str(row.running) for row in rows], rank=6),
        *_gpu_time(rows, unit, totals),
        *(Column(header, column) for header, column in zip(headers, cells, strict=True)),
    ]


def _gpu_time(rows: Sequence[GpuTime], unit: GpuTimeUnit, totals: GpuTime) -> list[Column]:
    """Return the columns of allocated and wasted time; where the rows are all of a total, they add up as printed."""
    wasted = unit.parts([row.wasted_s for row in rows], totals.wasted_s)
    columns = [
        Column(unit.name.upper(), unit.parts([row.gpu_s for row in rows], totals.gpu_s)),
        Column("WASTED", [cell if row.coverage else UNKNOWN for row, cell in zip(rows, wasted, strict=True)]),
        Column("WASTED %", [percent(wasted_share(row)) for row in rows], rank=1),
        Column("MEAN USE", [mean_cell(row) for row in rows], rank=5),
    ]
    if any(row.unknown_s for row in rows):
        columns.append(Column("UNKNOWN", [percent(share(row.unknown_s, row.gpu_s)) for row in rows], rank=2))
    return columns

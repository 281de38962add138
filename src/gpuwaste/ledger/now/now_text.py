"""The current state of the cluster as text for people."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.core.units import GpuTimeUnit, say_duration
from gpuwaste.ledger.now.now_types import IdleJob, NowAges, NowDocument, NowTotals, QueueRow, SilentNode
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, clock, fit, local_time, share, short, uncut

_LEVELS: Final = ("high", "moderate", "low", "idle", "suspended", "unknown")
_SILENT_HEADERS: Final = ("NODE", "GPUS", "JOBS", "LAST REPORT", "SILENT FOR", "STATE")
_QUEUE_HEADERS: Final = ("PARTITION", "JOBS", "GPUS", "OLDEST", "LONGEST WAIT")
_ROWS: Final = 20


def now_text(document: NowDocument, look: Look) -> str:
    """Render the document; healthy nodes are only in its other formats."""
    now = document.generated
    lines = look.title(f"GPUs now: {local_time(now, look.zone)}") if look.header else []
    lines += _totals(document.totals, document.ages, now, look)
    lines += ["", *(_level(document.totals, name, look) for name in _LEVELS if _shown(document.totals, name))]
    lines += look.heading("Jobs with idle GPUs, largest waste first")
    lines += _idle_table(document.idle, document.idle_left_out, look)
    lines += look.heading("Nodes with allocated GPUs that report nothing, longest silence first")
    lines += _silent_table(document.silent, document.totals.silent_nodes, now, look)
    lines += look.heading("Pending jobs")
    lines += _queue_table(document.queue, look)
    notes = [line for note in document.notes for line in look.bullet(note)]
    return "\n".join([*lines, *(look.heading("Notes") if notes else ()), *notes]) + "\n"


def _totals(totals: NowTotals, ages: NowAges, now: int, look: Look) -> list[str]:
    of = UNKNOWN if totals.gpus is None else str(totals.gpus)
    accounting = "not read yet"
    if ages.accounting_read is not None:
        accounting = f"read {say_duration(max(0, now - ages.accounting_read))} ago"
    reports = UNKNOWN
    if ages.report_median_s is not None:
        reports = f"median {short(ages.report_median_s)} old, oldest {short(ages.report_max_s)}"
    return look.facts(
        [
            ("Allocated", f"{totals.held} of {of} GPUs"),
            ("Jobs", str(totals.jobs)),
            ("Wasted", f"{GpuTimeUnit.of([totals.idle_wasted_s]).words(totals.idle_wasted_s)} by the GPUs idle now"),
            ("Accounting", accounting),
            ("Reports", reports),
            *([("Shared GPUs", f"{totals.shares} parts allocated")] if totals.shares else []),
        ]
    )


def _shown(totals: NowTotals, level: str) -> bool:
    return bool(getattr(totals, level)) or level in _LEVELS[:4]


def _level(totals: NowTotals, level: str, look: Look) -> str:
    count = getattr(totals, level)
    return look.measure(
        level, share(count, totals.held), f"{count} {'GPU' if count == 1 else 'GPUs'}", bad=level == "idle"
    )


def _idle_table(rows: Sequence[IdleJob], left_out: int, look: Look) -> list[str]:
    if not rows and not left_out:
        return ["  none"]
    unit = GpuTimeUnit.of(row.wasted_s for row in rows)
    lines = look.fitted(
        [
            Column("JOBID", [uncut(row.printed_id) for row in rows], left=True),
            Column("GPUS", [str(row.gpus) for row in rows], rank=2),
            Column("IDLE", [str(row.idle) for row in rows], rank=1),
            Column("SINCE", [local_time(row.since, look.zone)[5:16] for row in rows], left=True, rank=4),
            Column("IDLE FOR", [clock(row.reported - row.since) for row in rows], rank=3),
            Column(unit.name.upper(), [unit.number(row.wasted_s) for row in rows]),
            Column("ADVICE", [told(row) or UNKNOWN for row in rows], left=True, rank=5),
            Column("USER: NAME", [f"{row.user}: {row.name}" for row in rows]),
        ]
    )
    lines += [f"  ... and {left_out} more with less waste (--limit)"] if left_out else []
    if not look.header:
        return lines
    advice = "; ADVICE: given by sbatch at submission" if "ADVICE" in lines[0] else ""
    return [*lines, *look.bullet(f"{unit.name.upper()}: wasted by the idle GPUs{advice}")]


def told(job: IdleJob) -> str:
    """Return the strongest action shown to the user at submission, "" for none."""
    said = {row.action for row in job.advice if row.said is not False}
    return next((action for action in ("reject", "warn", "annotate") if action in said), "")


def _silent_table(rows: Sequence[SilentNode], count: int, now: int, look: Look) -> list[str]:
    if not count:
        return ["  none"]
    if not rows:
        return [f"  {count}, none runs a job of yours"]
    cells = [
        (
            uncut(row.node),
            str(row.gpus),
            str(row.jobs),
            local_time(row.since, look.zone),
            clock(max(0, now - row.since)),
            fit(row.state, 16) or UNKNOWN,
        )
        for row in rows[:_ROWS]
    ]
    more = count - len(cells)
    lines = look.table(_SILENT_HEADERS, cells, frozenset({0, 3, 5}))
    return [*lines, f"  ... and {more} more nodes"] if more > 0 else lines


def _queue_table(rows: Sequence[QueueRow], look: Look) -> list[str]:
    if not rows:
        return ["  none"]
    cells = [
        (
            fit(row.partition, 24),
            str(row.jobs),
            str(row.gpus),
            local_time(row.oldest, look.zone),
            clock(row.longest_wait_s),
        )
        for row in rows[:_ROWS]
    ]
    lines = look.table(_QUEUE_HEADERS, cells, frozenset({0, 3}))
    more = len(rows) - _ROWS
    return [*lines, f"  ... and {more} more partitions"] if more > 0 else lines

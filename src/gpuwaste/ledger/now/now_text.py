"""The current state of the cluster as text for people."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.ledger.now.now_types import IdleJob, NowAges, NowDocument, NowTotals, QueueRow, SilentNode
from gpuwaste.show.layout import Look, bullet, facts
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time, share, short, uncut

_LEVELS: Final = ("high", "moderate", "low", "idle", "suspended", "unknown")
_IDLE_HEADERS: Final = ("JOBID", "GPUS", "IDLE", "SINCE", "IDLE FOR", "WASTED", "TOLD", "USER: NAME")
_SILENT_HEADERS: Final = ("NODE", "GPUS", "JOBS", "LAST REPORT", "SILENT", "STATE")
_QUEUE_HEADERS: Final = ("PARTITION", "JOBS", "GPUS", "OLDEST", "LONGEST WAIT")
_ROWS: Final = 20


def now_text(document: NowDocument, look: Look) -> str:
    """Render the document; healthy nodes are only in its other formats."""
    now = document.generated
    lines = look.title(f"GPUs now: {local_time(now, look.zone)}") if look.header else []
    lines += _totals(document.totals, document.ages, now)
    lines += ["", *(_level(document.totals, name, look) for name in _LEVELS if _shown(document.totals, name))]
    lines += look.heading("Jobs that hold idle GPUs, largest waste first")
    lines += _idle_table(document.idle, document.idle_left_out, look)
    lines += look.heading("Nodes with held GPUs that report nothing, longest silence first")
    lines += _silent_table(document.silent, document.totals.silent_nodes, now, look)
    lines += look.heading("Pending jobs")
    lines += _queue_table(document.queue, look)
    notes = [line for note in document.notes for line in bullet(note)]
    return "\n".join([*lines, *(look.heading("Notes") if notes else ()), *notes]) + "\n"


def _totals(totals: NowTotals, ages: NowAges, now: int) -> list[str]:
    of = UNKNOWN if totals.gpus is None else str(totals.gpus)
    read = UNKNOWN if ages.accounting_read is None else f"{short(max(0, now - ages.accounting_read))} ago"
    reports = UNKNOWN
    if ages.report_median_s is not None:
        reports = f"{short(ages.report_median_s)} old, at most {short(ages.report_max_s)}"
    return facts(
        [
            ("GPUs held", f"{totals.held} of {of}"),
            ("Jobs", str(totals.jobs)),
            ("Wasted", f"{short(totals.idle_wasted_s)} by GPUs idle now"),
            ("Accounting", f"read {read}" if read != UNKNOWN else "not read yet"),
            ("Reports", reports),
            *([("Shares", str(totals.shares))] if totals.shares else []),
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
    cells = [
        (
            uncut(row.printed_id),
            str(row.gpus),
            str(row.idle),
            local_time(row.since, look.zone)[5:16],
            short(row.reported - row.since),
            short(row.wasted_s),
            told(row) or UNKNOWN,
            fit(f"{row.user}: {row.name}", 20),
        )
        for row in rows
    ]
    lines = look.table(_IDLE_HEADERS, cells, frozenset({0, 3, 6, 7}))
    return [*lines, f"  ... and {left_out} more with less waste (--limit)"] if left_out else lines


def told(job: IdleJob) -> str:
    """Return the strongest action shown to the user at submission, "" for none."""
    said = {row.action for row in job.advice if row.said is not False}
    return next((action for action in ("reject", "warn", "annotate") if action in said), "")


def _silent_table(rows: Sequence[SilentNode], count: int, now: int, look: Look) -> list[str]:
    if not count:
        return ["  none"]
    if not rows:
        return [f"  {count}, none with a job of yours"]
    cells = [
        (
            uncut(row.node),
            str(row.gpus),
            str(row.jobs),
            local_time(row.since, look.zone),
            short(max(0, now - row.since)),
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
            short(row.longest_wait_s),
        )
        for row in rows[:_ROWS]
    ]
    lines = look.table(_QUEUE_HEADERS, cells, frozenset({0, 3}))
    more = len(rows) - _ROWS
    return [*lines, f"  ... and {more} more partitions"] if more > 0 else lines

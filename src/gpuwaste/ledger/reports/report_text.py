"""Reports as text for people: 80 columns, bars, and notes that end in the exact line to use."""

from collections.abc import Mapping, Sequence
from typing import Final

from gpuwaste.ledger.energy.energy_text import (
    energy_account_lines,
    energy_cells,
    energy_day_lines,
    energy_headers,
    energy_lines,
)
from gpuwaste.ledger.fix_words import finding_lines
from gpuwaste.ledger.reports.report_types import (
    ClusterRow,
    FindingCount,
    FindingRow,
    GpuTime,
    JobRow,
    ReportDocument,
    TopDocument,
    UserRow,
)
from gpuwaste.show.layout import COLUMNS, Look, bullet, facts
from gpuwaste.show.terminal_cells import (
    UNKNOWN,
    fit,
    local_time,
    percent,
    share,
    short,
    state_code,
    uncut,
    width,
)

_CLASSES: Final = ("high", "moderate", "low", "idle", "unknown", "suspended", "pending")
_LEVELS: Final = (
    ("high", "mean above {0.high_above_pct:g} %"),
    ("moderate", "mean {0.low_below_pct:g} to {0.high_above_pct:g} %"),
    ("low", "mean below {0.low_below_pct:g} %"),
    ("none", "never above 0 %"),
    ("unknown", "nothing known"),
)
_JOB_HEADERS: Final = ("JOBID", "ST", "GPUS", "ALLOC", "MEAN", "WASTED", "W%", "UNKN", "CPU", "MEM")
_ROWS: Final = 20
_NAME: Final = 17
_LEAST_NAME: Final = 10
_TYPE: Final = 8
_USER: Final = 24
_PRICED_USER: Final = 16
_CLUSTER: Final = (32, 24, 16)  # characters of its name by the number of columns of energy and cost
_PER_KIND: Final = 3


def report_text(document: ReportDocument, look: Look) -> str:
    """Render a report document."""
    totals = document.totals
    lines = look.title(f"GPU use of {_whose(document)}") if look.header else []
    lines += facts(
        [
            ("From", local_time(document.start, look.zone)),
            ("To", local_time(document.end, look.zone)),
            ("Jobs", str(document.job_count)),
            ("GPU-time", short(totals.gpu_s)),
        ]
    )
    lines += measure_lines(totals, look)
    lines += class_lines(totals, look)
    lines += energy_lines(document.energy, look)
    lines += _levels(document, look)
    if document.shared.devices:
        lines += look.heading("Shared GPUs (shards, MPS): listed separately, never counted as waste")
        lines += facts([("GPU-time", short(document.shared.gpu_s)), ("Mean", mean_cell(document.shared))])
    if document.clusters:
        lines += look.heading("Clusters")
        lines += cluster_table(document.clusters, look)
    if document.scope != "user":
        lines += look.heading("Users, largest waste first")
        lines += user_table(document.users, look)
    if document.scope == "cluster":
        lines += energy_account_lines(document.accounts, look)
    lines += energy_day_lines(document.days, look)
    lines += look.heading("Jobs, largest waste first")
    lines += job_table(document.jobs, look, document.jobs_left_out)
    lines += note_lines(look, document.notes, document.findings, document.finding_counts)
    return "\n".join(lines) + "\n"


def top_text(document: TopDocument, look: Look) -> str:
    """Render who wastes GPUs now."""
    lines = look.title(f"GPUs wasted by running jobs since {local_time(document.since, look.zone)}")
    lines += measure_lines(document.totals, look)
    lines += look.heading("Users")
    lines += user_table(document.users, look)
    lines += look.heading("Running jobs")
    lines += job_table(document.jobs, look, 0, user=True)
    lines += note_lines(look, document.notes)
    return "\n".join(lines) + "\n"


def job_table(rows: Sequence[JobRow], look: Look, left_out: int, *, user: bool = False) -> list[str]:
    """Return the table of jobs, cut to one screen; with the type of GPUs if any is known."""
    shown = rows[:_ROWS]
    typed = any(row.gpu_type for row in shown)
    cells = [
        (
            uncut(row.printed_id),
            state_code(row.state),
            str(row.gpus),
            short(row.gpu_s),
            mean_cell(row),
            *waste_cells(row),
            percent(share(row.unknown_s, row.gpu_s)),
            percent(row.cpu_efficiency),
            percent(row.memory_efficiency),
            *((fit(row.gpu_type, _TYPE),) if typed else ()),
        )
        for row in shown
    ]
    headers = (*_JOB_HEADERS, "TYPE") if typed else _JOB_HEADERS
    used = sum(1 + max(map(width, column)) for column in zip(headers, *cells, strict=True))
    room = min(_NAME, max(_LEAST_NAME, COLUMNS - 2 - used))
    named = [
        (*line, fit(f"{row.user}: {row.name}" if user else row.name, room))
        for line, row in zip(cells, shown, strict=True)
    ]
    lines = look.table((*headers, "NAME"), named, frozenset({0, 1, *range(len(_JOB_HEADERS), len(headers) + 1)}))
    more = left_out + max(0, len(rows) - _ROWS)
    return [*lines, f"  ... and {more} more with less waste (--parsable prints all)"] if more else lines


def cluster_table(rows: Sequence[ClusterRow], look: Look) -> list[str]:
    """Return the table of clusters, with energy and cost if known."""
    more_headers = energy_headers(row.energy for row in rows)
    room = _CLUSTER[len(more_headers)]
    cells = [(*_sums(row), *energy_cells(row.energy, more_headers), fit(row.cluster, room)) for row in rows]
    headers = ("JOBS", "RUN", "ALLOC", "MEAN", "WASTED", "W%", "UNKN", *more_headers, "CLUSTER")
    return look.table(headers, cells, frozenset({len(headers) - 1}))


def user_table(rows: Sequence[UserRow], look: Look) -> list[str]:
    """Return the table of users, cut to one screen, with energy and cost if known."""
    more_headers = energy_headers(row.energy for row in rows)
    cells = [
        (
            *_sums(row),
            str(row.under_used.jobs),
            *energy_cells(row.energy, more_headers),
            fit(row.user, _PRICED_USER if len(more_headers) > 1 else _USER),
        )
        for row in rows[:_ROWS]
    ]
    headers = ("JOBS", "RUN", "ALLOC", "MEAN", "WASTED", "W%", "UNKN", "UNDER", *more_headers, "USER")
    more = len(rows) - _ROWS
    lines = look.table(headers, cells, frozenset({len(headers) - 1}))
    return [*lines, f"  ... and {more} more users with less waste"] if more > 0 else lines


def _whose(document: ReportDocument) -> str:
    """Return whose jobs the report covers, and in which clusters."""
    names = fit(", ".join(row.cluster for row in document.clusters), 48)
    if document.scope != "cluster":
        return f"{document.scope} {fit(document.name, 48)}" + (f" in {names}" if names else "")
    if not document.name:
        return f"all clusters: {names}" if names else "all clusters"
    return f"clusters {names}" if names else f"cluster {fit(document.name, 48)}"


def _sums(row: ClusterRow | UserRow) -> tuple[str, ...]:
    waste = (*waste_cells(row), percent(share(row.unknown_s, row.gpu_s)))
    return (str(row.jobs), str(row.running), short(row.gpu_s), mean_cell(row), *waste)


def waste_cells(row: GpuTime) -> tuple[str, str]:
    """Return the waste and its share; unknown if no time is known."""
    if row.coverage in {None, 0}:
        return UNKNOWN, UNKNOWN
    return short(row.wasted_s), percent(share(row.wasted_s, row.gpu_s))


def mean_cell(row: GpuTime) -> str:
    """Return the mean utilization; unknown where there is none."""
    mean = row.mean_util_pct
    return UNKNOWN if mean is None else percent(mean / 100)


def measure_lines(totals: GpuTime, look: Look) -> list[str]:
    """Return an empty line, bars of waste and mean utilization, and what of the waste is exempt."""
    mean, known = totals.mean_util_pct, bool(totals.coverage)
    wasted = share(totals.wasted_s, totals.gpu_s) if known else None
    lines = [
        "",
        look.measure("Wasted", wasted, short(totals.wasted_s) if known else "", bad=True),
        look.measure("Mean use", None if mean is None else mean / 100, "of the known GPU time"),
    ]
    if totals.exempt_s:
        reasons = ", ".join(r.replace("_", " ") for r in totals.exempt_by_reason_s)
        lines += bullet(f"of the waste {short(totals.exempt_s)} is exempt ({reasons})")
    return lines


def class_lines(totals: GpuTime, look: Look) -> list[str]:
    """Return the ledger's view: every allocated second is in one class."""
    lines = look.heading("Allocated GPU time by class")
    for name in _CLASSES:
        if (seconds := getattr(totals, f"{name}_s")) or name in _CLASSES[:4]:
            lines.append(look.measure(name, share(seconds, totals.gpu_s), short(seconds)))
    if totals.unknown_by_reason_s:
        reasons = ", ".join(f"{name} {short(s)}" for name, s in totals.unknown_by_reason_s.items())
        lines += bullet(f"unknown is never waste: {reasons}")
    return lines


def _levels(document: ReportDocument, look: Look) -> list[str]:
    """Return the thesis' view: each device by the level of its mean, and the under-used rule."""
    limits = document.thresholds
    rows = [
        (
            name,
            str(document.levels[name].devices),
            short(document.levels[name].gpu_s),
            text.format(limits),
        )
        for name, text in _LEVELS
        if document.levels[name].devices
    ]
    under = document.under_used
    lines = look.heading("GPUs of each job by mean utilization")
    lines += look.table(("LEVEL", "DEVICES", "ALLOC", ""), rows, frozenset({0, 3}))
    text = (
        f"under-used (mean below {limits.underused_below_pct:g} %, completed, "
        f"{limits.min_coverage:.0%} known): {under.devices} of {under.judged_devices} devices "
        f"in {under.jobs} of {under.judged_jobs} jobs, {short(under.gpu_s)}"
    )
    return [*lines, *bullet(text)]


def note_lines(
    look: Look,
    notes: Sequence[str],
    findings: Sequence[FindingRow] = (),
    counts: Mapping[str, FindingCount] | None = None,
) -> list[str]:
    """Return the Notes block: findings by kind, then the notes of the document."""
    lines: list[str] = []
    shown: dict[str, int] = {}
    for finding in findings:
        kind = finding.kind
        shown[kind] = shown.get(kind, 0) + 1
        if shown[kind] <= _PER_KIND:
            lines += finding_lines(finding)
    for kind, count in (counts or {}).items():
        if (more := count.findings - min(_PER_KIND, shown.get(kind, 0))) > 0:
            lines += bullet(f"and {more} more like this: {kind.replace('_', ' ')}")
    for note in notes:
        lines += bullet(note)
    return [*look.heading("Notes"), *lines] if lines else []

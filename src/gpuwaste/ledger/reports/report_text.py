"""Reports as text for people: what to do first, then the jobs, then the details; as wide as the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gpuwaste.core.units import GpuTimeUnit, say_percent
from gpuwaste.ledger.energy.energy_text import energy_account_lines, energy_day_lines, energy_lines, energy_summary
from gpuwaste.ledger.fix_words import finding_lines
from gpuwaste.ledger.reports.job_columns import cluster_table, job_table, mean_cell, user_table, wasted_share
from gpuwaste.ledger.reports.report_types import (
    FindingCount,
    FindingRow,
    GpuTime,
    ReportDocument,
    Thresholds,
    TopDocument,
)
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time, percent, share

_CLASSES: Final = (
    ("high", "above {0.high_above_pct:g} %"),
    ("moderate", "{0.low_below_pct:g} % to {0.high_above_pct:g} %"),
    ("low", "above 0 %, below {0.low_below_pct:g} %"),
    ("idle", "0 %"),
    ("unknown", "never counted as wasted"),
    ("suspended", "job suspended"),
    ("pending", "not reported yet"),
)
_ALWAYS: Final = frozenset({"high", "moderate", "low", "idle"})
_LEVELS: Final = {"idle": "none"}  # the level of a GPU whose mean is 0 %
_REASONS: Final = {
    "memory_resident": "a model stays in GPU memory",
    "interactive_grace": "pause of an interactive job",
}
_UNKNOWN: Final = {
    "gap": "no samples",
    "no_agent": "no agent on the node",
    "mean_only": "only the mean is known (jobstats)",
    "unreported": "not reported by the agent",
    "clock_step": "the node's clock was set",
    "not_supported": "the GPU reports no utilization",
    "invalid": "invalid utilization",
    "gpu_lost": "GPU lost",
    "driver": "no answer of the driver",
    "released": "GPUs released for maintenance",
    "not_in_nvml": "the driver does not list the GPU",
    "mig": "MIG instance without counters",
    "partition": "GPU partition without counters",
    "conflict": "sources disagree about the job",
}
_PER_KIND: Final = 3


def report_text(document: ReportDocument, look: Look, *, energy: bool = False) -> str:
    """Render a report document; with `energy` the energy and cost of each user, account and day too."""
    totals = document.totals
    unit = GpuTimeUnit.of([totals.gpu_s, *(row.gpu_s for row in document.jobs)])
    lines = look.title(f"GPU use of {_whose(document)}") if look.header else []
    lines += look.facts(
        [
            ("From", local_time(document.start, look.zone)),
            ("To", local_time(document.end, look.zone)),
            ("Jobs", str(document.job_count)),
            (unit.name, unit.number(totals.gpu_s)),
            *_waste_facts(totals, unit),
        ]
    )
    first = _worst(document.findings)
    if first is not None:
        lines += [*look.heading("What to do first"), *finding_lines(first, unit, look, _user_of(document, first))]
    if document.clusters:
        lines += look.heading("Clusters")
        lines += cluster_table(document.clusters, look, unit, totals, energy=energy)
    if document.scope != "user":
        lines += look.heading("Users, largest waste first")
        lines += user_table(document.users, look, unit, totals, energy=energy)
    lines += look.heading("Jobs, largest waste first")
    lines += job_table(document.jobs, look, unit, totals, document.jobs_left_out)
    lines += class_lines(totals, look, unit, document.thresholds, _devices_of(document))
    others = [finding for finding in document.findings if finding is not first]
    lines += cause_lines(look, unit, others, document.finding_counts, first)
    lines += _energy(document, look, full=energy)
    return "\n".join([*lines, *note_lines(look, [*_details(document, unit), *document.notes])]) + "\n"


def top_text(document: TopDocument, look: Look) -> str:
    """Render who wastes GPUs now."""
    totals = document.totals
    unit = GpuTimeUnit.of([totals.gpu_s])
    lines = look.title(f"GPUs wasted by running jobs since {local_time(document.since, look.zone)}")
    lines += look.facts([(unit.name, unit.number(totals.gpu_s)), *_waste_facts(totals, unit)])
    lines += look.heading("Users")
    lines += user_table(document.users, look, unit, totals, energy=False)
    lines += look.heading("Running jobs")
    lines += job_table(document.jobs, look, unit, totals, 0, user=True)
    return "\n".join([*lines, *note_lines(look, [*exempt_words(totals, unit), *document.notes])]) + "\n"


def _waste_facts(totals: GpuTime, unit: GpuTimeUnit) -> list[tuple[str, str]]:
    part = wasted_share(totals)
    wasted = UNKNOWN if part is None else f"{unit.words(totals.wasted_s)} ({percent(part)})"
    return [("Wasted", wasted), ("Mean use", mean_cell(totals))]


def _worst(findings: Iterable[FindingRow]) -> FindingRow | None:
    """Return the finding of the largest waste that a user can fix."""
    return next((finding for finding in findings if finding.fixes), None)


def _user_of(document: ReportDocument, finding: FindingRow) -> str:
    """Return whose job a finding is of, where a report has several users; "" if its job is not in the table."""
    ids = {run.printed_id for run in finding.runs}
    users = (row.user for row in document.jobs if row.printed_id in ids)
    return "" if document.scope == "user" else fit(next(users, ""), 24)


def _whose(document: ReportDocument) -> str:
    """Return whose jobs the report covers, and in which clusters."""
    names = fit(", ".join(row.cluster for row in document.clusters), 48)
    if document.scope != "cluster":
        return f"{document.scope} {fit(document.name, 48)}" + (f" in {names}" if names else "")
    if not document.name:
        return f"all clusters: {names}" if names else "all clusters"
    return f"clusters {names}" if names else f"cluster {fit(document.name, 48)}"


def _devices_of(document: ReportDocument) -> dict[str, int]:
    """Return how many GPUs of jobs have their mean in each class."""
    return {level: row.devices for level, row in document.levels.items()}


def class_lines(
    totals: GpuTime, look: Look, unit: GpuTimeUnit, limits: Thresholds, devices: Mapping[str, int] | None = None
) -> list[str]:
    """Return the table of classes: each allocated second is in one, and they add up as printed.

    With `devices` it also has how many GPUs have their mean in each class.
    """
    seconds = {name: getattr(totals, f"{name}_s") for name, _ in _CLASSES}
    counts = {name: (devices or {}).get(_LEVELS.get(name, name), 0) for name in seconds}
    shown = [name for name in seconds if seconds[name] or counts[name] or name in _ALWAYS]
    amounts = [seconds[name] for name in shown]
    about = dict(_CLASSES)
    columns = [
        Column("CLASS", [*shown, "total"], left=True),
        Column(unit.name.upper(), [*unit.parts(amounts, totals.gpu_s), unit.number(totals.gpu_s)]),
        Column("SHARE", [*(percent(share(amount, totals.gpu_s)) for amount in amounts), ""]),
        Column("UTILIZATION", [*(about[name].format(limits) for name in shown), ""]),
    ]
    if devices:
        columns.insert(3, Column("GPUS", [*(str(counts[name]) for name in shown), str(sum(counts.values()))], rank=1))
    lines = [*look.heading("GPU time by utilization"), *look.fitted(columns)]
    if devices and look.header:
        lines += look.bullet("GPUS counts each GPU of each job once, by its mean utilization")
    return lines


def exempt_words(totals: GpuTime, unit: GpuTimeUnit) -> list[str]:
    """Return what of the waste is exempt, and why time is unknown."""
    found = []
    if totals.exempt_s:
        reasons = ", ".join(_REASONS.get(name, name.replace("_", " ")) for name in totals.exempt_by_reason_s)
        found.append(f"{unit.words(totals.exempt_s)} of the waste are exempt ({reasons})")
    if totals.unknown_by_reason_s:
        names, amounts = zip(*totals.unknown_by_reason_s.items(), strict=True)
        parts = zip(names, unit.parts(amounts, totals.unknown_s), strict=True)
        reasons = ", ".join(f"{amount} {_UNKNOWN.get(name, name.replace('_', ' '))}" for name, amount in parts)
        found.append(f"{unit.words(totals.unknown_s)} are unknown: {reasons}")
    return found


def _details(document: ReportDocument, unit: GpuTimeUnit) -> list[str]:
    """Return the sentences that explain figures of the report."""
    limits, under, parts = document.thresholds, document.under_used, document.shared
    found = exempt_words(document.totals, unit)
    if under.judged_devices:
        found.append(
            f"under-used: {under.devices} of {under.judged_devices} GPUs in {under.jobs} of {under.judged_jobs} jobs, "
            f"{unit.words(under.gpu_s)} (completed jobs with {say_percent(limits.min_coverage)} of the time known and "
            f"a mean below {limits.underused_below_pct:g} %)"
        )
    if parts.devices:
        found.append(
            f"shared GPUs (shards, MPS): {unit.words(parts.gpu_s)}, mean use {mean_cell(parts)}; "
            "not in the figures above, never counted as wasted"
        )
    return found


def _energy(document: ReportDocument, look: Look, *, full: bool) -> list[str]:
    """Return one line on energy, or all of it."""
    if not full:
        return energy_summary(document.energy, look)
    lines = energy_lines(document.energy, look)
    if document.scope == "cluster":
        lines += energy_account_lines(document.accounts, look)
    return lines + energy_day_lines(document.days, look)


def cause_lines(
    look: Look,
    unit: GpuTimeUnit,
    findings: Sequence[FindingRow],
    counts: Mapping[str, FindingCount],
    first: FindingRow | None = None,
) -> list[str]:
    """Return the findings, at most three of a kind; `first` is a finding that was printed before."""
    lines: list[str] = []
    shown = {first.kind: 1} if first else {}
    for finding in findings:
        shown[finding.kind] = shown.get(finding.kind, 0) + 1
        if shown[finding.kind] <= _PER_KIND:
            lines += finding_lines(finding, unit, look)
    for kind, count in counts.items():
        if (more := count.findings - min(_PER_KIND, shown.get(kind, 0))) > 0:
            lines += look.bullet(f"and {more} more of the kind {kind.replace('_', ' ')}")
    return [*look.heading("More to improve"), *lines] if lines else []


def note_lines(look: Look, notes: Sequence[str]) -> list[str]:
    """Return the block of notes."""
    lines = [line for note in notes for line in look.bullet(note)]
    return [*look.heading("Notes"), *lines] if lines else []

"""The document of one job as text for people: each run with its devices, its advice, and notes."""

from collections.abc import Mapping, Sequence

from gpuwaste.core.fields import Interval
from gpuwaste.core.units import GpuTimeUnit, format_size
from gpuwaste.ledger.energy.energy_text import energy_lines, energy_summary
from gpuwaste.ledger.fix_words import finding_lines
from gpuwaste.ledger.ledger import ACCOUNTED
from gpuwaste.ledger.reports.accounted_rows import accounted_words
from gpuwaste.ledger.reports.job_columns import mean_cell, wasted_share
from gpuwaste.ledger.reports.job_types import Advice, DeviceRow, JobDocument, RunRow
from gpuwaste.ledger.reports.report_text import cause_lines, class_lines, exempt_words, note_lines
from gpuwaste.ledger.reports.report_types import FindingRow, Thresholds
from gpuwaste.show.layout import Column, Look, said_lines
from gpuwaste.show.terminal_cells import UNKNOWN, clock, fit, gpu_names, local_time, percent, share, uncut


def job_text(document: JobDocument, look: Look, *, energy: bool = False) -> str:
    """Render a job document: each run with what to change and its GPUs, then advice and notes."""
    lines: list[str] = []
    left = list(document.findings)
    for run in document.runs:
        own = [finding for finding in left if _is_of(finding, run)]
        left = [finding for finding in left if finding not in own]
        lines += [*_run(run, own, document.thresholds, look, energy=energy), ""]
    advice = _advice(document.advice, look)
    if document.said_again:
        from gpuwaste.ledger.reports.predicted_times import predicted_lines  # noqa: PLC0415 few reports have it

        advice += predicted_lines(document, look)
    unit = GpuTimeUnit.of(finding.wasted_gpu_s for finding in left)
    return (
        "\n".join([*lines[:-1], *advice, *cause_lines(look, unit, left, {}), *note_lines(look, document.notes)]) + "\n"
    )


def _is_of(finding: FindingRow, run: RunRow) -> bool:
    """Return whether a finding is of this run alone."""
    return [(one.printed_id, one.start) for one in finding.runs] == [(run.printed_id, run.start)]


def _run(run: RunRow, findings: Sequence[FindingRow], limits: Thresholds, look: Look, *, energy: bool) -> list[str]:
    again = f", restart {run.restarts}" if run.restarts else ""
    held_s = run.totals.gpu_s if run.start is not None else 0.0  # a job that waits has no totals
    totals, unit = run.totals, GpuTimeUnit.of([held_s])
    lines = look.title(f"Job {uncut(run.printed_id)}{again}: {fit(run.name, 40)}")
    lines += look.facts(
        [
            ("User", fit(run.user, 24)),
            ("Account", fit(run.account, 24)),
            ("State", fit(run.state, 24)),
            ("Partition", fit(run.partition, 24)),
            ("Start", local_time(run.start, look.zone)),
            ("End", local_time(run.end, look.zone)),
            ("Nodes", uncut(run.nodes)),
            ("GPUs", f"{_count(run.gpus)} {fit(run.gpu_type, 16)}".strip()),
            ("CPUs", _count(run.cpus)),
            *([(unit.name, unit.number(totals.gpu_s))] if run.devices else []),
        ]
    )
    if run.start is None:
        return [*lines, "", "  The job has not started."]
    changes = [line for finding in findings for line in finding_lines(finding, unit, look)]
    title = "What to change" if any(finding.fixes for finding in findings) else "What was found"
    lines += [*look.heading(title), *changes] if changes else []
    lines.append("")
    if run.devices:
        known = wasted_share(totals)
        wasted = "" if known is None else f"{unit.number(totals.wasted_s)} of {unit.words(totals.gpu_s)}"
        mean = totals.mean_util_pct
        lines.append(look.measure("Wasted", known, wasted, bad=True))
        lines.append(look.measure("Mean use", None if mean is None else mean / 100, "of the known GPU time"))
    lines.append(look.measure("CPU", run.cpu_efficiency, f"of {run.cpus} CPUs"))
    lines.append(look.measure("Memory", run.memory_efficiency, _memory(run)))
    if run.devices:
        lines += class_lines(totals, look, unit, limits)
        lines += (line for text in exempt_words(totals, unit) for line in look.bullet(text))
        lines += (energy_lines if energy else energy_summary)(run.energy, look)
    return lines + _devices(run, [*run.devices, *run.shared], unit, look)


def _advice(advice: Sequence[Advice], look: Look) -> list[str]:
    """Return the advice at the job's submission and modifications; what only an operator may know is marked."""
    if not advice:
        return []
    lines = look.heading("Advice at submission")
    for row in advice:
        shadow = f", not shown to the user: would be {row.would_be}" if row.said is False else ""
        lines.append(f"  {local_time(row.at, look.zone)} {row.op}: {row.action}{shadow}")
        lines += said_lines(row.lines)
        lines += _expected(row, look)
    return lines


def _expected(row: Advice, look: Look) -> list[str]:
    """Return the expected start and end, and the actual start."""
    lines = []
    for what, found in (("start", row.expected_start), ("end", row.expected_end)):
        if isinstance(found, Interval):
            middle, first, last = (local_time(at, look.zone) for at in (found.p50, found.p10, found.p90))
            lines.append(f"    expected {what} {middle} (80 %: {first} to {last})")
    if isinstance(row.started, int):
        lines.append(f"    started {local_time(row.started, look.zone)}")
    return lines


def _count(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _memory(run: RunRow) -> str:
    return f"of {format_size(run.mem_req_b)}" if run.mem_req_b else ""


def _devices(run: RunRow, devices: Sequence[DeviceRow], unit: GpuTimeUnit, look: Look) -> list[str]:
    if not devices:
        return ["", "  The job held no GPU."]
    names = gpu_names({d.gpu_uuid for d in devices if d.gpu_uuid})
    wasted = unit.parts([d.wasted_s for d in devices], run.totals.wasted_s)
    columns = [
        Column("GPU", [names.get(d.gpu_uuid or "", "no agent") for d in devices], left=True),
        Column("MEAN USE", [mean_cell(d) for d in devices]),
        Column("CLASS", ["idle" if d.level == "none" else d.level for d in devices], left=True, rank=5),
        Column("WASTED", [cell if d.coverage else UNKNOWN for d, cell in zip(devices, wasted, strict=True)]),
        Column("WASTED %", [percent(wasted_share(d)) for d in devices], rank=1),
        Column("UNKNOWN", [percent(share(d.unknown_s, d.gpu_s)) for d in devices], rank=2),
        Column("GPU MEMORY", [percent(share(d.mem_max_b, d.mem_total_b or 0)) for d in devices], rank=4),
        Column("UNTOUCHED", ["yes" if d.untouched else "no" if d.coverage else UNKNOWN for d in devices], rank=3),
        Column("NODE", [uncut(d.node or UNKNOWN) + _part(d) for d in devices], left=True, whole=True),
    ]
    lines = [*look.heading(f"GPUs, wasted time in {unit.name}"), *look.fitted(columns)]
    if any("UNTOUCHED" in line for line in lines):
        lines += look.bullet("UNTOUCHED: no process ever opened the GPU")
    lines += [line for text in accounted_words(run) for line in look.bullet(text)]
    return [*lines, *_profiles(names, devices, look), *_held(run, names, devices, look)]


def _part(device: DeviceRow) -> str:
    return f" (share {device.share:g})" if device.share < 1 else ""


def _held(run: RunRow, names: Mapping[str, str], devices: Sequence[DeviceRow], look: Look) -> list[str]:
    """Return when each GPU was allocated, by accounting and by the agents; one line where all agree to the second."""
    devices = [d for d in devices if d.map_source != ACCOUNTED]
    if not devices:
        return []
    sources = {f"{d.map_source}, {d.confidence}" if d.gpu_uuid else "" for d in devices}
    if len(sources) == 1 and "" not in sources and {(d.t0, d.t1) for d in devices} == {(run.start, run.end)}:
        return look.bullet(f"Accounting and the agents agree on when each GPU was allocated (source: {sources.pop()})")
    seen: list[tuple[str, float | None, float | None, str]] = [("accounting", run.start, run.end, "")]
    seen += [(names[d.gpu_uuid], d.t0, d.t1, f"{d.map_source}, {d.confidence}") for d in devices if d.gpu_uuid]
    columns = [
        Column("GPU", [name for name, *_ in seen], left=True),
        Column("FROM", [local_time(start, look.zone) for _, start, _, _ in seen], left=True),
        Column("TO", [local_time(end, look.zone) for _, _, end, _ in seen], left=True, rank=1),
        Column("SOURCE", [source for *_, source in seen]),
    ]
    return [*look.heading("When each GPU was allocated, by accounting and by the agents"), *look.fitted(columns)]


def _profiles(names: Mapping[str, str], devices: Sequence[DeviceRow], look: Look) -> list[str]:
    """Return the profiling counters of the GPUs of which they were read; nothing where there were none."""
    read = [d for d in devices if d.profiled_s]
    if not read:
        return []
    columns = [
        Column("GPU", [names.get(d.gpu_uuid or "", "no agent") for d in read], left=True),
        Column("SM", [percent(d.sm_active) for d in read]),
        Column("TENSOR", [percent(d.tensor_active) for d in read]),
        Column("DRAM", [percent(d.dram_active) for d in read]),
        Column("NVLINK", [UNKNOWN if d.nvlink_b is None else format_size(d.nvlink_b) for d in read], rank=2),
        Column("PCIE", [UNKNOWN if d.pcie_b is None else format_size(d.pcie_b) for d in read], rank=1),
        Column("PROFILED FOR", [clock(d.profiled_s) for d in read]),
    ]
    return [*look.heading("Profiling: mean activity, and bytes in both directions"), *look.fitted(columns)]

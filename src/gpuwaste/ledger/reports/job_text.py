"""The document of one job as text for people: each run with its devices, its advice, and notes."""

from collections.abc import Mapping, Sequence

from gpuwaste.core.fields import Interval
from gpuwaste.core.units import format_size
from gpuwaste.ledger.energy.energy_text import energy_lines
from gpuwaste.ledger.reports.job_types import Advice, DeviceRow, JobDocument, RunRow
from gpuwaste.ledger.reports.report_text import class_lines, mean_cell, measure_lines, note_lines, waste_cells
from gpuwaste.show.layout import Look, facts, said_lines
from gpuwaste.show.terminal_cells import UNKNOWN, fit, gpu_names, local_time, percent, share, short, uncut


def job_text(document: JobDocument, look: Look) -> str:
    """Render a job document: each run with its devices, then the notes."""
    lines: list[str] = []
    for run in document.runs:
        lines += [*_run(run, look), ""]
    advice = _advice(document.advice, look)
    if document.said_again:
        from gpuwaste.ledger.reports.predicted_times import predicted_lines  # noqa: PLC0415 few reports have it

        advice += predicted_lines(document, look)
    return "\n".join([*lines[:-1], *advice, *note_lines(look, document.notes, document.findings)]) + "\n"


def _run(run: RunRow, look: Look) -> list[str]:
    again = f", restart {run.restarts}" if run.restarts else ""
    lines = look.title(f"Job {uncut(run.printed_id)}{again}: {fit(run.name, 40)}")
    lines += facts(
        [
            ("User", fit(run.user, 24)),
            ("Account", fit(run.account, 24)),
            ("State", fit(run.state, 24)),
            ("Partition", fit(run.partition, 24)),
            ("Start", local_time(run.start, look.zone)),
            ("End", local_time(run.end, look.zone)),
            ("Nodes", uncut(run.nodes)),
            ("GPUs", f"{run.gpus} {fit(run.gpu_type, 16)}".strip()),
            ("CPUs", str(run.cpus)),
        ]
    )
    if run.start is None:
        return [*lines, "", "  The job has not started."]
    lines += ["", look.measure("CPU", run.cpu_efficiency, f"of {run.cpus} CPUs")]
    lines.append(look.measure("Memory", run.memory_efficiency, _memory(run)))
    if run.devices:
        lines += [*measure_lines(run.totals, look)[1:], *class_lines(run.totals, look)]
        lines += energy_lines(run.energy, look)
    lines += _devices(run, [*run.devices, *run.shared], look)
    return lines


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


def _memory(run: RunRow) -> str:
    return f"of {format_size(run.mem_req_b)}" if run.mem_req_b else ""


def _devices(run: RunRow, devices: Sequence[DeviceRow], look: Look) -> list[str]:
    if not devices:
        return ["", "  The job held no GPU."]
    names = gpu_names({d.gpu_uuid for d in devices if d.gpu_uuid})
    cells = [
        (
            names.get(d.gpu_uuid or "", "no agent"),
            mean_cell(d),
            d.level,
            *waste_cells(d),
            percent(share(d.unknown_s, d.gpu_s)),
            percent(share(d.mem_max_b, d.mem_total_b or 0)),
            "yes" if d.untouched else "no" if d.coverage else UNKNOWN,
            uncut(d.node or UNKNOWN) + (f" (share {d.share:g})" if d.share < 1 else ""),
        )
        for d in devices
    ]
    headers = ("GPU", "MEAN", "LEVEL", "WASTED", "W%", "UNKN", "GMEM", "UNTOUCHED", "NODE")
    lines = [*look.heading("GPUs"), *look.table(headers, cells, frozenset({0, 2, 8}))]
    lines += _profiles(names, devices, look)
    seen = [("accounting", local_time(run.start, look.zone), local_time(run.end, look.zone), "")]
    seen += [
        (
            names[d.gpu_uuid],
            local_time(d.t0, look.zone),
            local_time(d.t1, look.zone),
            f"{d.map_source}, {d.confidence}",
        )
        for d in devices
        if d.gpu_uuid
    ]
    lines += look.heading("Allocated from, to: accounting and agents")
    return [*lines, *look.table(("GPU", "FROM", "TO", "SOURCE"), seen, frozenset({0, 1, 2, 3}))]


def _profiles(names: Mapping[str, str], devices: Sequence[DeviceRow], look: Look) -> list[str]:
    """Return the profiling counters of the GPUs of which they were read; nothing where there were none."""
    cells = [
        (
            names.get(d.gpu_uuid or "", "no agent"),
            percent(d.sm_active),
            percent(d.tensor_active),
            percent(d.dram_active),
            UNKNOWN if d.nvlink_b is None else format_size(d.nvlink_b),
            UNKNOWN if d.pcie_b is None else format_size(d.pcie_b),
            short(d.profiled_s),
        )
        for d in devices
        if d.profiled_s
    ]
    if not cells:
        return []
    headers = ("GPU", "SM", "TENSOR", "DRAM", "NVLINK", "PCIE", "READ")
    return [*look.heading("Profiling: means, and bytes both ways"), *look.table(headers, cells, frozenset({0}))]

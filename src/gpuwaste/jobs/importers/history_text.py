"""The text of `gpuwaste history status`."""

from collections.abc import Mapping
from typing import Any

from tabulate import tabulate

from gpuwaste.core.units import format_size
from gpuwaste.jobs.importers.history_types import HistoryMonth, HistorySource, HistoryStatus
from gpuwaste.slurm.formats.times import format_time


def status_text(document: HistoryStatus) -> str:
    """Return the document for a person."""
    parts = [f"store {document.store}"]
    if document.sources:
        parts.append(_table(("source", "imports", "pages", "raw", "kept", "runs", "bad", "stands at", "ends"), [
            (
                row.key, row.imports, row.pages, format_size(row.size_b), format_size(row.packed_b),
                row.runs, row.bad, _stands(row, document.marks), row.end_rule or "cut off",
            )
            for row in document.sources
        ]))  # fmt: skip
    parts.append(_months(document.runs))
    parts += [
        f"{row.cluster}: {row.open} runs without an end"
        + (f", {row.runaway} of them a day past their limit (runaway jobs?)" if row.runaway else "")
        for row in document.open
    ]
    if document.unread:
        parts.append(_table(("source", "field", "runs in which it cannot be read"), [
            (row.source, row.field, row.runs) for row in document.unread
        ]))  # fmt: skip
    if document.pages_due:
        parts.append(
            f"{document.pages_due} raw pages have columns that an earlier version did not read: the hub reads them "
            "again in the background, gpuwaste history import --again at once"
        )
    if document.quarantined:
        parts.append(f"{document.quarantined} rows kept aside")
        parts.append(_table(("rows", "source", "first line", "reason"), [
            (row.rows, row.source, row.first_line, row.reason) for row in document.quarantine
        ]))  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _stands(row: HistorySource, marks: Mapping[str, int]) -> str:
    mark = marks.get(row.key)
    if mark is None:
        return ""
    return format_time(mark) if "-live:" in row.key or row.kind == "slurmrestd" else f"byte {mark}"


def _months(runs: list[HistoryMonth]) -> str:
    """Return a table of cluster and month by state."""
    if not runs:
        return "no runs"
    states = sorted({row.state or "unknown" for row in runs})
    months: dict[tuple[str, str], dict[str, int]] = {}
    for row in runs:
        months.setdefault((row.cluster, row.month), {})[row.state or "unknown"] = row.runs
    rows = [
        (cluster, month, sum(counts.values()), *(counts.get(state, 0) for state in states))
        for (cluster, month), counts in months.items()
    ]
    return _table(("cluster", "month", "runs", *states), rows)


def _table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    return tabulate(rows, header, disable_numparse=True)

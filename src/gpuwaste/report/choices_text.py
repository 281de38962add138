"""Choices of a request as text for people: a table, the one chosen, and the lines that hand it over."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_size, say_duration
from gpuwaste.documents.estimate_types import EstimateChoice, EstimateChoicesDocument
from gpuwaste.report.cells import fit
from gpuwaste.report.layout import Look, bullet

_SHOWN: Final = 60
"""Rows printed; --json has all."""


def choices_text(document: EstimateChoicesDocument, look: Look) -> str:
    """Render the choices of an estimate."""
    rows = document.choices
    lines = look.title(f"{fit(document.program.name or 'program', 40)}: which request ({document.goal})")
    shown = [row for place, row in enumerate(rows) if place < _SHOWN or row.chosen]
    lines += _table(shown, look)
    if len(shown) < len(rows):
        lines.append(f"  ({len(rows) - len(shown)} more rows: --json, or fewer types with --gpu)")
    lines += [line for part in document.memory_basis.split("; ") if part for line in bullet(f"memory: {part}")]
    for reason, names in _by_reason(rows).items():
        lines += bullet(f"no time on {', '.join(names)}: {harmless(reason)}")
    for basis in dict.fromkeys(row.basis for row in rows if row.basis):
        lines += bullet(f"time: {harmless(basis)}")
    if document.script:
        lines += look.heading("In the script")
        lines += [f"  {line}" for line in document.script]
        lines += look.heading("When it would start")
        lines.append(f"  {document.plan}")
    noted = [line for note in document.notes for line in bullet(harmless(note))]
    return "\n".join([*lines, *look.heading("Notes"), *noted] if noted else lines) + "\n"


def _by_reason(rows: Sequence[EstimateChoice]) -> dict[str, list[str]]:
    """Return why one GPU has no time, with the types of each reason."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.refused and row.gpus == 1:
            found.setdefault(row.refused, {})[row.gpu] = None
    return {reason: list(names) for reason, names in found.items()}


def _table(rows: Sequence[EstimateChoice], look: Look) -> list[str]:
    timed, priced = any(row.step_s is not None for row in rows), any(row.cost is not None for row in rows)
    header = ["", "GPU", "GPUs", "Batch", "Needs", "Fits"]
    header += [*(["Step", "Run", "GPU-hours"] if timed else []), *(["Cost"] if priced else [])]
    return look.table(header, [_row(row, timed, priced) for row in rows], frozenset({0, 1, 5}))


def _row(row: EstimateChoice, timed: bool, priced: bool) -> list[str]:
    cells = ["*" if row.chosen else "", fit(row.gpu, 20), str(row.gpus), str(row.batch or "-")]
    cells += [format_size(row.memory_b), row.fits]
    if timed:
        cells.append("-" if row.step_s is None else f"{row.step_s:.3g} s")
        cells.append("-" if row.run_s is None else say_duration(row.run_s))
        cells.append("-" if row.gpu_hours is None else f"{row.gpu_hours:.3g}")
    if priced:
        cells.append("-" if row.cost is None else f"{row.cost:.4g}")
    return cells

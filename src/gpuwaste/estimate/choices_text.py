"""Choices of a request as text for people: a table, the one chosen, and the lines that hand it over."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_size, say_duration
from gpuwaste.estimate.estimate_types import EstimateChoice, EstimateChoicesDocument
from gpuwaste.show.cells import fit
from gpuwaste.show.layout import Look, bullet

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
    """Return why one GPU or MIG instance has no time, with the types of each reason."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.refused and row.gpus == 1:
            found.setdefault(row.refused, {})["MIG instances" if row.mig else row.gpu] = None
    return {reason: list(names) for reason, names in found.items()}


def _table(rows: Sequence[EstimateChoice], look: Look) -> list[str]:
    columns = [column for column in _COLUMNS if column.always or any(column.known(row) for row in rows)]
    header = [column.title for column in columns]
    left = frozenset(place for place, column in enumerate(columns) if column.left)
    return look.table(header, [[column.cell(row) for column in columns] for row in rows], left)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table; one that is not `always` there needs a row of which it is `known`."""

    title: str
    cell: Callable[[EstimateChoice], str]
    known: Callable[[EstimateChoice], bool] = lambda _: True
    always: bool = True
    left: bool = False


def _run(row: EstimateChoice) -> str:
    return "-" if row.run_s is None else say_duration(row.run_s)


def _timed(row: EstimateChoice) -> bool:
    return row.step_s is not None


def _priced(row: EstimateChoice) -> bool:
    return row.cost is not None


_COLUMNS: Final = (
    _Column("", lambda row: "*" if row.chosen else "", left=True),
    _Column("GPU", lambda row: fit(row.gpu, 20), left=True),
    _Column("MIG", lambda row: row.mig or "-", lambda row: bool(row.mig), always=False, left=True),
    _Column("GPUs", lambda row: str(row.gpus)),
    _Column("File", lambda row: fit(row.file, 30), lambda row: bool(row.file), always=False, left=True),
    _Column("Batch", lambda row: str(row.batch or "-")),
    _Column("Needs", lambda row: format_size(row.memory_b)),
    _Column("Fits", lambda row: row.fits, left=True),
    _Column("Step", lambda row: "-" if row.step_s is None else f"{row.step_s:.3g} s", _timed, always=False),
    _Column("Run", _run, _timed, always=False),
    _Column("GPU-hours", lambda row: "-" if row.gpu_hours is None else f"{row.gpu_hours:.3g}", _timed, always=False),
    _Column("Cost", lambda row: "-" if row.cost is None else f"{row.cost:.4g}", _priced, always=False),
)

"""An estimate as text: the program, its memory, the GPU types on which it fits, choices of a request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_size, say_duration
from gpuwaste.estimate.estimate_types import EstimateChoice, EstimateChoicesDocument, EstimateDocument, EstimateOnGpu
from gpuwaste.show.layout import Look, bullet, facts
from gpuwaste.show.terminal_cells import fit

_MANY: Final = 4
"""With more GPU types than this, MIG sizes are not printed."""
_UNITS: Final = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"))
_SHOWN: Final = 60
"""Most rows printed; --json has all."""


def estimate_text(document: EstimateDocument, look: Look) -> str:
    """Render an estimate document."""
    program = document.program
    lines = look.title(f"{fit(program.name or 'program', 40)}: estimate")
    lines += facts(
        [
            ("Program", f"{program.operations:,.0f} operations ({program.source})"),
            ("One step", f"{_flops(program.flops)}, {format_size(program.moved_b)} moved"),
            ("Parameters", format_size(program.parameters_b)),
            ("Fingerprint", program.fingerprint[:16]),
        ]
    )
    lines += look.heading("GPU memory")
    lines.append(
        f"  {format_size(document.memory_b)} (between {format_size(document.memory_low_b)} "
        f"and {format_size(document.memory_high_b)}), of which the program {format_size(document.program_b)}"
    )
    lines += [line for part in document.basis.split("; ") if part for line in bullet(part)]
    lines += look.heading("Where it fits")
    many = len({each.gpu for each in document.gpus}) > _MANY
    lines += _table([each for each in document.gpus if not many or not each.mig], look)
    for basis, names in _bases(document.gpus).items():
        lines += bullet(f"time on {', '.join(names)}: {harmless(basis)}")
    if many:
        lines.append("  (--gpu TYPE prints its MIG sizes too)")
    if document.comment:
        lines += [*look.heading("Tie your runs to this program"), f"  #SBATCH {harmless(document.comment)}"]
    noted = [line for note in document.notes for line in bullet(harmless(note))]
    if document.refused:
        noted += bullet(f"no time: {document.refused}")
    return "\n".join([*lines, *look.heading("Notes"), *noted] if noted else lines) + "\n"


def _bases(gpus: Sequence[EstimateOnGpu]) -> dict[str, list[str]]:
    """Return the bases of the times, with the GPU types of each; the basis of a scaled one states that."""
    found: dict[str, list[str]] = {}
    for each in gpus:
        if each.basis:
            found.setdefault(each.basis, []).append(each.gpu)
    return found


def _table(gpus: Sequence[EstimateOnGpu], look: Look) -> list[str]:
    timed = any(each.step_s is not None for each in gpus)
    header = ["GPU", "MIG", "Memory", "Fits", *(["Step", "Run"] if timed else [])]
    rows = [
        [
            fit(each.gpu, 20),
            each.mig or "-",
            format_size(each.capacity_b),
            each.fits,
            *([_step(each), "-" if each.run_s is None else say_duration(each.run_s)] if timed else []),
        ]
        for each in gpus
    ]
    return look.table(header, rows, frozenset({0, 1, 3}))


def _step(each: EstimateOnGpu) -> str:
    if each.step_s is None:
        return "-"
    if each.step_low_s is None or each.step_high_s is None:
        return f"{each.step_s:.3g} s"
    return f"{each.step_s:.3g} s ({each.step_low_s:.3g}-{each.step_high_s:.3g})"


def _flops(value: float) -> str:
    for size, name in _UNITS:
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.0f} FLOP"


def choices_text(document: EstimateChoicesDocument, look: Look) -> str:
    """Render the choices of an estimate."""
    rows = document.choices
    lines = look.title(f"{fit(document.program.name or 'program', 40)}: which request ({document.goal})")
    shown = [row for place, row in enumerate(rows) if place < _SHOWN or row.chosen]
    lines += _choices_table(shown, look)
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


def _choices_table(rows: Sequence[EstimateChoice], look: Look) -> list[str]:
    columns = [column for column in _COLUMNS if column.always or any(column.known(row) for row in rows)]
    header = [column.title for column in columns]
    left = frozenset(place for place, column in enumerate(columns) if column.left)
    return look.table(header, [[column.cell(row) for column in columns] for row in rows], left)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table; unless `always` is set, it is shown only if it is `known` for some row."""

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

"""An estimate as text: the program, its memory, the GPU types on which it fits, choices of a request."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import HOUR_S, GpuTimeUnit, SizeUnit, format_size, say_number
from gpuwaste.estimate.estimate_types import EstimateChoice, EstimateChoicesDocument, EstimateDocument, EstimateOnGpu
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, clock, fit

_MANY: Final = 4
"""With more GPU types than this, MIG sizes are not printed."""
_UNITS: Final = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"))
_STEPS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_SHOWN: Final = 60
"""Most rows printed; --json has all."""


def estimate_text(document: EstimateDocument, look: Look) -> str:
    """Render an estimate document."""
    program = document.program
    lines = look.title(f"{fit(program.name or 'program', 40)}: estimate")
    lines += look.facts(
        [
            (
                "Program",
                f"{program.operations:,.0f} operation{'' if program.operations == 1 else 's'} ({program.source})",
            ),
            ("One step", f"{_flops(program.flops)}, {format_size(program.moved_b)} read and written"),
            ("Parameters", format_size(program.parameters_b)),
            ("Fingerprint", program.fingerprint[:16]),
        ]
    )
    lines += look.heading("GPU memory")
    need = f"{format_size(document.memory_low_b)} to {format_size(document.memory_high_b)}"
    own = f"{format_size(document.program_low_b)} to {format_size(document.program_high_b)}"
    lines += look.bullet(f"{format_size(document.memory_b)} ({need}) in all")
    lines += look.bullet(f"{format_size(document.program_b)} ({own}) for the arrays of the program")
    lines += look.bullet(f"{format_size(document.context_b)} for its process besides, whatever the size of the program")
    lines += [line for part in _memory_basis(document).split("; ") if part for line in look.bullet(part)]
    lines += look.heading("Where it fits")
    many = len({each.gpu for each in document.gpus}) > _MANY
    lines += _table([each for each in document.gpus if not many or not each.mig], look)
    for basis, names in _bases(document.gpus).items():
        lines += look.bullet(f"time on {', '.join(names)}: {harmless(basis)}")
    if many:
        lines.append("  (--gpu TYPE also prints the MIG sizes of the type)")
    if document.comment:
        lines += [
            *look.heading("In the script, to count your runs as runs of this program"),
            f"  #SBATCH {harmless(document.comment)}",
        ]
    noted = [line for note in document.notes for line in look.bullet(harmless(note))]
    if document.refused:
        noted += look.bullet(f"no time: {document.refused}")
    return "\n".join([*lines, *look.heading("Notes"), *noted] if noted else lines) + "\n"


def _memory_basis(document: EstimateDocument) -> str:
    """Return the basis without that of the time, which is printed below the table."""
    times = {each.basis for each in document.gpus if each.basis}
    return document.basis.removesuffix(f"; {times.pop()}") if len(times) == 1 else document.basis


def _bases(gpus: Sequence[EstimateOnGpu]) -> dict[str, list[str]]:
    """Return the bases of the times, with the GPU types of each; the basis of a scaled one states that."""
    found: dict[str, list[str]] = {}
    for each in gpus:
        if each.basis:
            found.setdefault(each.basis, []).append(each.gpu)
    return found


def _table(gpus: Sequence[EstimateOnGpu], look: Look) -> list[str]:
    memory = SizeUnit.of(each.capacity_b for each in gpus)
    step_s, step = _step_unit([each.step_s for each in gpus])
    columns = [
        Column("GPU", [fit(each.gpu, 20) for each in gpus], left=True),
        Column(
            "MIG", [each.mig or UNKNOWN for each in gpus], left=True, rank=0 if any(each.mig for each in gpus) else 9
        ),
        Column(f"MEMORY, {memory.name}", [memory.number(each.capacity_b) for each in gpus], rank=3),
    ]
    if any(each.step_s is not None for each in gpus):
        columns += [
            Column(f"STEP, {step}", [_steps(each.step_s, step_s) for each in gpus], rank=1),
            Column("90 % INTERVAL", [_interval(each, step_s) for each in gpus], rank=2),
            Column("RUN TIME", [clock(each.run_s) for each in gpus]),
        ]
    return look.fitted([*columns, Column("FITS", [each.fits for each in gpus], left=True, whole=True)])


def _step_unit(steps_s: Sequence[float | None]) -> tuple[float, str]:
    """Return the unit of all times of a step in a column, in seconds, and its name."""
    largest_s = max((step for step in steps_s if step is not None), default=0.0)
    return next((unit for unit in _STEPS if largest_s >= unit[0]), _STEPS[-1])


def _steps(value_s: float | None, unit_s: float) -> str:
    return UNKNOWN if value_s is None else say_number(value_s / unit_s, 2)


def _interval(each: EstimateOnGpu, unit_s: float) -> str:
    if each.step_low_s is None or each.step_high_s is None:
        return UNKNOWN
    return f"{_steps(each.step_low_s, unit_s)} to {_steps(each.step_high_s, unit_s)}"


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
    if look.header and any(row.chosen for row in shown):
        lines.append(f"  *: {document.goal}")
    if len(shown) < len(rows):
        lines.append(f"  ({len(rows) - len(shown)} more rows: --json, or fewer types with --gpu)")
    lines += [line for part in document.memory_basis.split("; ") if part for line in look.bullet(f"memory: {part}")]
    for reason, names in _by_reason(rows).items():
        lines += look.bullet(f"no time on {', '.join(names)}: {harmless(reason)}")
    for basis in dict.fromkeys(part for row in rows for part in _basis_parts(row)):
        lines += look.bullet(f"time: {harmless(basis)}")
    if document.script:
        lines += look.heading("In the script")
        lines += [f"  {line}" for line in document.script]
        lines += look.heading("When it would start")
        lines.append(f"  {document.plan}")
    noted = [line for note in document.notes for line in look.bullet(harmless(note))]
    return "\n".join([*lines, *look.heading("Notes"), *noted] if noted else lines) + "\n"


def _by_reason(rows: Sequence[EstimateChoice]) -> dict[str, list[str]]:
    """Return why a row has no time, with the types of each reason; several GPUs where one GPU has another answer."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.refused and row.gpus == 1:
            found.setdefault(row.refused, {})["MIG instances" if row.mig else row.gpu] = None
    for row in rows:
        if row.refused and row.gpus > 1 and row.gpu not in found.get(row.refused, {}):
            found.setdefault(row.refused, {})["several GPUs"] = None
    return {reason: list(names) for reason, names in found.items()}


def _basis_parts(row: EstimateChoice) -> list[str]:
    """Return the basis of one GPU and, of several, what is added to it without their number: many rows share each."""
    if row.gpus == 1 or not row.basis:
        return [row.basis] if row.basis else []
    one, _, several = row.basis.rpartition("; ")
    return [one, several.replace(f"{row.gpus} GPUs", "several GPUs", 1)]


def _choices_table(rows: Sequence[EstimateChoice], look: Look) -> list[str]:
    need = SizeUnit.of(row.memory_b for row in rows)
    columns = [
        Column("", ["*" if row.chosen else "" for row in rows], left=True),
        Column("GPU", [fit(row.gpu, 20) for row in rows], left=True),
        Column("MIG", [row.mig or UNKNOWN for row in rows], left=True),
        Column("GPUS", [str(row.gpus) for row in rows]),
        Column("FILE", [fit(row.file or UNKNOWN, 30) for row in rows], left=True),
        Column("BATCH", [str(row.batch or UNKNOWN) for row in rows]),
        Column(f"NEEDS, {need.name}", [need.number(row.memory_b) for row in rows], rank=3),
        *_times(rows),
        Column("FITS", [row.fits for row in rows], left=True, whole=True),
    ]
    empty = {"MIG", "FILE", "BATCH"}
    return look.fitted([column for column in columns if column.head not in empty or set(column.cells) != {UNKNOWN}])


def _times(rows: Sequence[EstimateChoice]) -> list[Column]:
    """Return the columns of times and cost; none that is unknown for all rows."""
    if all(row.step_s is None for row in rows):
        return []
    step_s, step = _step_unit([row.step_s for row in rows])
    amounts_s = [None if row.gpu_hours is None else row.gpu_hours * HOUR_S for row in rows]
    unit = GpuTimeUnit.of(amounts_s)
    columns = [
        Column(f"STEP, {step}", [_steps(row.step_s, step_s) for row in rows], rank=2),
        Column("RUN TIME", [clock(row.run_s) for row in rows]),
        Column(unit.name.upper(), [UNKNOWN if one is None else unit.number(one) for one in amounts_s], rank=1),
    ]
    if any(row.cost is not None for row in rows):
        columns.append(Column("COST", [UNKNOWN if row.cost is None else say_number(row.cost, 2) for row in rows]))
    return columns

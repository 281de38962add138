"""An estimate as text for people: the program, its memory, and each GPU type on which it fits or does not."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_size, say_duration
from gpuwaste.estimate.estimate_types import EstimateDocument, EstimateOnGpu
from gpuwaste.show.cells import fit
from gpuwaste.show.layout import Look, bullet, facts

_MANY: Final = 4
"""GPU types of which MIG sizes are not printed, only those of fewer."""
_UNITS: Final = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"))


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
    """Return what the times rest on, with the GPU types of each: one scaled from another says so."""
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

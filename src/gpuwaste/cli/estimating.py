"""What `gpuwaste estimate FILE` does: the program read, its memory, the requested GPU types, the document."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from gpuwaste.cli.estimate_choices import MAX_LISTED, choices_document, of_several
from gpuwaste.cli.step_time_models import measured_overheads, step_times
from gpuwaste.cli.words import path_word
from gpuwaste.core.errors import UsageError
from gpuwaste.estimate.choices import ON_MIG
from gpuwaste.estimate.estimate_types import EstimateDocument, EstimatedProgram, EstimateOnGpu, StepTime
from gpuwaste.estimate.program import UNKNOWN_KINDS, Program, op_sums
from gpuwaste.estimate.program_memory import ASSUMED, PREALLOCATED, Fit, MemoryEstimate, Overhead, estimate_memory, fits
from gpuwaste.estimate.reading import read_programs
from gpuwaste.slurm.gpu_links import site_links
from gpuwaste.slurm.gpu_types import GpuType, devices, site_prices, types_asked
from gpuwaste.slurm.submit.program_tie import ProgramTie, comment_of

_WHAT_IF: Final = ("batch", "gpus", "goal", "samples", "price", "mig", "pipeline")
"""Options that request a comparison of requests."""


def estimate_and_tell(options: argparse.Namespace) -> int:
    """Estimate and print. Raises GpuwasteError."""
    from gpuwaste.cli.options import config_of, print_own
    from gpuwaste.estimate.estimate_text import estimate_text

    files = list(dict.fromkeys(options.files))
    if not files:
        raise UsageError("estimate: give a program: HLO text, StableHLO, ONNX, or the JSON of a probe")
    if len(files) > MAX_LISTED:
        raise UsageError(f"estimate: {len(files)} files: at most {MAX_LISTED}")
    names = [name for name in (options.gpu or "").split(",") if name.strip()]
    asked = {name.strip(): types_asked(name) for name in names}
    wanted = list({each.name: each for types in asked.values() for each in types}.values())
    config = config_of(options)
    models_dir = options.models_dir or path_word(config.common.models_dir)
    if len(files) > 1 or any(getattr(options, name) not in {None, False} for name in _WHAT_IF):
        from gpuwaste.estimate.estimate_text import choices_text

        programs, prices = _named_programs(files), site_prices(config.estimate.prices)
        links = site_links(config.estimate.links)
        choices = choices_document(
            programs, options, wanted or devices(), models_dir, _program, site=prices, links=links
        )
        print_own(choices, choices_text, as_json=options.json)
        return 0
    (file,) = files
    found = read_programs(file)
    program = next(found)
    if next(found, None) is not None:
        raise UsageError(f"{file}: holds several batch sizes: compare them with --goal cheapest")
    times = step_times(program, [each.name for each in wanted or devices()], models_dir, options.family)
    document = estimate_document(program, wanted, options.steps, times, measured_overheads(models_dir))
    document = replace(document, notes=[*of_several(asked), *document.notes])
    print_own(document, estimate_text, as_json=options.json)
    return 0


def _named_programs(files: Sequence[Path]) -> Iterator[tuple[str, Program]]:
    """Yield the programs of the files, one after another, with the file's name where there are several."""
    for file in files:
        for program in read_programs(file):
            yield str(file) if len(files) > 1 else "", program


def estimate_document(
    program: Program,
    wanted: list[GpuType],
    steps: int | None,
    times: Mapping[str, StepTime],
    overheads: Mapping[str, Overhead] | None = None,
) -> EstimateDocument:
    """Return the estimates of a program on the requested GPU types, all where none is named; `times` by their names.

    `overheads` are the contexts that this site has measured, by type.
    """
    contexts = overheads or {}
    memory = estimate_memory(program, contexts.get(wanted[0].name, ASSUMED) if len(wanted) == 1 else ASSUMED)
    places = fits(memory, wanted or devices(), contexts)
    gpus = [_on_gpu(place, times[place.gpu], steps) for place in places]
    only = gpus[0] if len(wanted) == 1 else None
    return EstimateDocument(
        program=_program(program),
        memory_b=memory.memory_b,
        memory_low_b=memory.low_b,
        memory_high_b=memory.high_b,
        program_b=memory.program_b,
        program_low_b=memory.program_low_b,
        program_high_b=memory.program_high_b,
        context_b=memory.memory_b - memory.program_b,
        steps=steps,
        step_s=only.step_s if only else None,
        run_s=only.run_s if only else None,
        basis="; ".join(part for part in (memory.basis, only.basis if only else "") if part),
        refused=only.refused if only else "",
        gpus=gpus,
        comment=comment_of(ProgramTie(program.fingerprint, steps)),
        notes=_notes(program, memory, places),
    )


def _program(program: Program) -> EstimatedProgram:
    sums = op_sums(program).values()
    return EstimatedProgram(
        name=program.name,
        source=program.source,
        fingerprint=program.fingerprint,
        operations=sum(each.count for each in sums),
        flops=sum(each.flops for each in sums),
        moved_b=sum(each.bytes for each in sums),
        parameters_b=program.parameters_b,
        outputs_b=program.outputs_b,
        training=program.training,
    )


def _on_gpu(place: Fit, time: StepTime, steps: int | None) -> EstimateOnGpu:
    found = EstimateOnGpu(gpu=place.gpu, mig=place.mig, capacity_b=place.capacity_b, fits=place.verdict)
    if place.mig:
        return replace(found, refused=ON_MIG)
    run_s = None if time.step_s is None or steps is None else time.step_s * steps
    return replace(
        found,
        step_s=time.step_s,
        step_low_s=time.low_s,
        step_high_s=time.high_s,
        run_s=run_s,
        basis=time.basis,
        refused=time.refused,
    )


def _notes(program: Program, memory: MemoryEstimate, places: list[Fit]) -> list[str]:
    notes = list(program.notes)
    unknown = sum(1 for op in program.ops if op.kind in UNKNOWN_KINDS)
    if unknown:
        notes.append(f"{unknown} operations are unknown: their memory is counted, their time is not")
    if program.source in {"hlo", "stablehlo", "jax"} and any(
        place.verdict != "does not fit" and memory.high_b > PREALLOCATED * place.capacity_b for place in places
    ):
        notes.append(
            "JAX takes 75 % of a GPU's memory at its start: where the program needs more, set "
            "XLA_PYTHON_CLIENT_MEM_FRACTION=0.95"
        )
    if places and all(place.verdict == "does not fit" for place in places):
        notes.append(
            "the program fits on none of the GPUs: use a smaller batch, or split the program over several GPUs"
        )
    return notes

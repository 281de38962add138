"""Memory: a compiler's figure or liveness, with a range; whether it fits."""

from pathlib import Path

import msgspec
from tests.unit.estimate.programs import PRODUCT, read_text

from gpuwaste.estimate.program import Buffer, CompiledMemory, peak_b
from gpuwaste.estimate.program_memory import (
    ASSUMED,
    MemoryEstimate,
    Overhead,
    estimate_memory,
    fits,
    measured_overhead,
    preallocated,
    verdict,
    with_overhead,
)
from gpuwaste.slurm.gpu_types import GIB, device


def test_the_peak_is_where_most_lives() -> None:
    """Three buffers of which two overlap: the larger pair counts, rounded up to 256 bytes each."""
    buffers = [
        Buffer(size_b=1000, first=0, last=1),
        Buffer(size_b=2000, first=1, last=2),
        Buffer(size_b=500, first=3, last=3),
    ]
    assert peak_b(buffers) == 1024 + 2048
    assert peak_b([]) == 0


def test_a_compilers_figure_is_taken(tmp_path: Path) -> None:
    """Arguments, outputs that do not reuse them, temporaries; the range is narrow, and the basis names the target."""
    compiled = CompiledMemory(target="H100", argument_b=4 * GIB, output_b=2 * GIB, alias_b=GIB, temp_b=3 * GIB)
    program = msgspec.structs.replace(read_text(tmp_path, PRODUCT), compiled=compiled)
    found = estimate_memory(program)
    assert found.program_b == 8 * GIB
    assert found.memory_b == 8 * GIB + ASSUMED.context_b
    assert "XLA's own figure for H100" in found.basis
    assert found.high_b - found.low_b < GIB * 1.5


def test_without_it_the_range_is_what_was_seen(tmp_path: Path) -> None:
    """Liveness before compilation: the range holds what programs showed, and the context is said to be assumed."""
    found = estimate_memory(read_text(tmp_path, PRODUCT))
    assert found.low_b < found.memory_b < found.high_b
    assert "before compilation" in found.basis
    assert "not measured here" in found.basis


def test_it_fits_only_where_the_whole_range_does() -> None:
    """Above the range it fits, below it does not, inside nobody can tell."""
    found = MemoryEstimate(memory_b=10, low_b=8, high_b=12, program_b=9, basis="")
    assert [verdict(found, size) for size in (7, 8, 11, 12)] == [
        "does not fit",
        "too close to tell",
        "too close to tell",
        "fits",
    ]


def test_each_size_of_instance_has_its_verdict() -> None:
    """15 GiB fit on an H100 and on half of it, not on an eighth."""
    found = MemoryEstimate(memory_b=15 * GIB, low_b=14 * GIB, high_b=16 * GIB, program_b=14 * GIB, basis="")
    verdicts = {(each.gpu, each.mig): each.verdict for each in fits(found, [device("h100")])}
    assert verdicts[("h100", "")] == verdicts[("h100", "3g.40gb")] == "fits"
    assert verdicts[("h100", "1g.10gb")] == "does not fit"


def test_a_small_program_is_apart_from_its_process(tmp_path: Path) -> None:
    """56 KiB of arrays: the program's own range has a few MiB, the rest of the need is the context's."""
    found = estimate_memory(read_text(tmp_path, PRODUCT))
    assert found.program_b == 57_344
    assert found.program_low_b < found.program_b < found.program_high_b < 5 << 20
    assert found.memory_b - found.program_b == ASSUMED.context_b
    assert (found.low_b, found.high_b) == (
        found.program_low_b + ASSUMED.low_b,
        found.program_high_b + ASSUMED.high_b,
    )


def test_a_measured_context_replaces_the_assumed_one(tmp_path: Path) -> None:
    """The program's own range stays; the basis names the measurement and no longer an assumption."""
    found = estimate_memory(read_text(tmp_path, PRODUCT))
    measured = with_overhead(found, measured_overhead("l4", GIB // 4, GIB // 3, GIB // 2))
    assert measured.memory_b == found.program_b + GIB // 3
    assert (measured.program_low_b, measured.program_high_b) == (found.program_low_b, found.program_high_b)
    assert "calibration of l4" in measured.basis
    assert "assumed" not in measured.basis


def test_each_type_has_its_own_context(tmp_path: Path) -> None:
    """A context of 30 GiB on the H100 fits there and on none of its small instances; the T4 keeps the assumed one."""
    overheads = {"h100": Overhead(30 * GIB, 30 * GIB, 30 * GIB, "")}
    found = fits(estimate_memory(read_text(tmp_path, PRODUCT)), [device("h100"), device("t4")], overheads)
    verdicts = {(each.gpu, each.mig): each.verdict for each in found}
    assert verdicts[("h100", "")] == verdicts[("t4", "")] == "fits"
    assert verdicts[("h100", "1g.10gb")] == "does not fit"


def test_what_jax_takes_at_its_start() -> None:
    """75 % of the memory, or a use of an unknown share, does not show a need."""
    assert [preallocated(used, 40) for used in (10, 30, 39)] == [False, True, False]
    assert preallocated(10, None)

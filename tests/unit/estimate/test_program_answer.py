"""What is expected of a job of a known program: memory by its file and own runs, and on which GPUs it fits."""

from typing import Any

import pytest

from gpuwaste.core.program_estimate import ProgramEstimate, ProgramRun
from gpuwaste.core.program_tie import ProgramTie
from gpuwaste.estimate.devices import GIB
from gpuwaste.estimate.hybrid import Job
from gpuwaste.estimate.memory import MemoryEstimate
from gpuwaste.estimate.program_answer import capacity_of, program_estimate

TIE = ProgramTie("a" * 64, 100)
NEEDS_30 = MemoryEstimate(30 * GIB, 28 * GIB, 34 * GIB, 29 * GIB, "liveness")


def answer(gpu: str, gpus: int = 1, *runs: ProgramRun, memory: MemoryEstimate | None = NEEDS_30) -> ProgramEstimate:
    """Return what is expected of a job on some GPUs."""
    return program_estimate(TIE, Job(gpu, gpus, 100), runs, memory=memory)


def run(gpu: str, seen_gib: float | None, total_gib: float, gpus: int = 1) -> ProgramRun:
    """Return a run that used so much GPU memory."""
    values: dict[str, Any] = {} if seen_gib is None else {"gpu_mem_max_b": int(seen_gib * GIB)}
    return ProgramRun(
        submit=0, end=100, run_s=100, steps=100, gpus=gpus, gpu_type=gpu, gpu_mem_total_b=int(total_gib * GIB), **values
    )


@pytest.mark.parametrize(
    ("gpu", "gpus", "fits"),
    [
        ("h100", 1, "fits"),
        ("t4", 1, "does not fit"),
        ("t4", 2, "must be sharded"),
        ("v100-32gb", 1, "too close to tell"),
        ("a100_1g.5gb", 1, "does not fit"),
        ("1g.10gb", 1, "does not fit"),
        ("our-gpu", 1, ""),
        ("", 1, ""),
    ],
)
def test_where_it_fits(gpu: str, gpus: int, fits: str) -> None:
    """Whole GPUs, MIG instances by their own name, several GPUs, and types that are not known."""
    assert answer(gpu, gpus).fits == fits


def test_what_own_runs_used_bounds_the_need() -> None:
    """A run that used 12 GiB elsewhere needed no more: the file's range ends there, and it fits where 12 GiB do."""
    found = answer("t4", 1, run("a100", 12, 40))
    assert (found.memory_low_b, found.memory_high_b, found.fits) == (12 * GIB, 12 * GIB, "fits")
    assert "used" in found.basis


def test_what_jax_takes_at_its_start_is_no_need() -> None:
    """A flat 75 % says nothing: the file's range stays; without a file nothing is known."""
    assert answer("t4", 1, run("a100", 30.1, 40)).memory_high_b == NEEDS_30.high_b
    assert answer("t4", 1, run("a100", 30.1, 40), memory=None).fits == ""


def test_a_completed_run_on_such_gpus_is_proof() -> None:
    """The file says that it does not fit, and a run completed there: it fits."""
    assert answer("t4", 1, run("t4", None, 15)).fits == "fits"
    assert answer("t4", 1, run("t4", None, 15, gpus=2)).fits == "does not fit"


def test_capacity_of_types() -> None:
    """An instance of a known GPU has the table's memory, of an unnamed one the number in its name at most."""
    assert capacity_of("h100_1g.10gb") == capacity_of("NVIDIA_H100-1g.10gb".removeprefix("NVIDIA_"))
    assert capacity_of("1g.10gb") == 10 * GIB
    assert (capacity_of("h100_1g.10gb") or 0) < 10 * GIB
    assert capacity_of("gtx") is None

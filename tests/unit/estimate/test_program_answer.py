"""What is expected of a job of a known program: memory by its file and own runs, and on which GPUs it fits."""

from typing import Any

import pytest

from gpuwaste.estimate.hybrid import EstimatedJob
from gpuwaste.estimate.program_answer import capacities_of, program_estimate
from gpuwaste.estimate.program_memory import MemoryEstimate
from gpuwaste.jobs.program_estimate import ProgramEstimate, ProgramRun
from gpuwaste.slurm.gpu_types import GIB
from gpuwaste.slurm.submit.program_tie import ProgramTie

TIE = ProgramTie("a" * 64, 100)
NEEDS_30 = MemoryEstimate(30 * GIB, 28 * GIB, 34 * GIB, 29 * GIB, "liveness")


def answer(gpu: str, gpus: int = 1, *runs: ProgramRun, memory: MemoryEstimate | None = NEEDS_30) -> ProgramEstimate:
    """Return what is expected of a job on some GPUs."""
    return program_estimate(TIE, EstimatedJob(gpu, gpus, 100), runs, memory=memory)


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


@pytest.mark.parametrize(
    ("needs_gib", "gpus", "fits", "capacity_gib"),
    [(30, 1, "fits", 39.39), (60, 1, "", None), (60, 2, "", None), (100, 1, "does not fit", 79.15),
     (100, 2, "", None), (200, 2, "does not fit", 79.15)],
)  # fmt: skip
def test_a_name_of_two_types_is_answered_for_both(
    needs_gib: int, gpus: int, fits: str, capacity_gib: float | None
) -> None:
    """a100 has 40 or 80 GB: a verdict is given where it is the same of both, else the basis has both."""
    memory = MemoryEstimate(needs_gib * GIB, needs_gib * GIB, needs_gib * GIB, needs_gib * GIB, "liveness")
    found = answer("a100", gpus, memory=memory)
    assert (found.fits, found.capacity_b) == (fits, None if capacity_gib is None else int(capacity_gib * GIB))
    both = "a100 can be a100-40gb (39.4 GiB: " in found.basis and "or a100-80gb (79.1 GiB: " in found.basis
    assert both is not bool(fits)


def test_an_instance_of_a_name_of_two_types() -> None:
    """a100_1g.5gb is of the boards with 40 GB, a100_1g.10gb of all: what each offers."""
    assert [capacity for _, capacity in capacities_of("a100_1g.5gb")] == [int(4.75 * GIB)] * 2
    assert [round(capacity / GIB, 2) for _, capacity in capacities_of("a100_1g.10gb")] == [9.62, 9.62, 9.5, 9.5]


def test_what_own_runs_used_bounds_the_need() -> None:
    """A run that used 12 GiB elsewhere needed no more: the file's range ends there, and it fits where 12 GiB do."""
    found = answer("t4", 1, run("a100", 12, 40))
    assert (found.memory_low_b, found.memory_high_b, found.fits) == (12 * GIB, 12 * GIB, "fits")
    assert "your 1 earlier run" in found.basis


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
    assert {capacity for _, capacity in capacities_of("h100_1g.10gb")} == {int(9.62 * GIB)}
    assert capacities_of("1g.10gb") == [("1g.10gb", 10 * GIB)]
    assert capacities_of("gtx") == []

"""The demo's program: the committed files are what the probe writes of it, and its work is that by hand."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwaste.estimate.probes import probe_text
from gpuwaste.estimate.program import by_kind, op_sums
from gpuwaste.estimate.program_memory import estimate_memory
from gpuwaste.estimate.reading import read_program
from gpuwaste.testing.demo.program import BATCHES, DATA, flops, least_b, probed
from gpuwaste.testing.frameworks import framework_python


def committed(_folder: Path, name: str) -> Path:
    """Return the file that travels with the demo."""
    return DATA / name


def written(folder: Path, name: str) -> Path:
    """Return what the probe writes here."""
    python = framework_python("jax")
    if python is None:
        pytest.skip("no GPUWASTE_JAX_PYTHON: a Python with jax")
    path = folder / name
    path.write_text(probed(python, probe_text("jax"), BATCHES[name]), encoding="utf-8")
    return path


@pytest.mark.long
@pytest.mark.parametrize("name", BATCHES)
def test_the_committed_files_are_what_the_probe_writes(tmp_path: Path, name: str) -> None:
    """The program of data/train_step.py, lowered here, has the fingerprint and the batch size of the committed file."""
    here, there = read_program(written(tmp_path, name)), read_program(committed(tmp_path, name))
    assert here.fingerprint == there.fingerprint
    assert here.batch == there.batch == BATCHES[name]


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("made", [committed, pytest.param(written, marks=pytest.mark.long)])
def test_its_work_and_memory_are_those_by_hand(tmp_path: Path, name: str, made: Callable[[Path, str], Path]) -> None:
    """FLOPs to the last one; memory is no less than the arrays that must be there at the same time."""
    program = read_program(made(tmp_path, name))
    assert by_kind(op_sums(program))["mm"].flops == flops(BATCHES[name])
    assert estimate_memory(program).program_b >= least_b(BATCHES[name])

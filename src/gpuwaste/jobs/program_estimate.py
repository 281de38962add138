"""Runs of one program as the hub returns them; expected run time and memory of its next job, and their text."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_size, say_duration, say_percent
from gpuwaste.show.layout import COLUMNS, bullet

Estimator = Literal["", "own runs", "white box", "history"]
MAX_RUNS: Final = 200
_Text = Annotated[str, Meta(max_length=4096)]
_Whole = Annotated[int, Meta(ge=0, le=1 << 62)]
_Seconds = Annotated[float, Meta(ge=0, le=1e18)]
_MaybeBytes = Annotated[_Whole | None, Meta(description="Bytes of GPU memory; null: not known.")]
_MaybeSeconds = Annotated[_Seconds | None, Meta(description="Seconds; null: not known.")]
_NAMES: Mapping[str, str] = {
    "history": "the model of job history",
    "own runs": "your earlier runs",
    "white box": "the program's operations",
}


class ProgramRun(Struct, kw_only=True, frozen=True):
    """One completed run of the caller with the program: its declared steps and its run time are a label."""

    submit: Annotated[_Whole, Meta(description="UTC seconds.")]
    end: Annotated[_Whole, Meta(description="UTC seconds.")]
    run_s: Annotated[_Whole, Meta(description="Run time, suspended time not counted.")]
    name: Annotated[_Text, Meta(description="The job's name.")] = ""
    steps: Annotated[_Whole | None, Meta(description="Steps that its comment declares; null: none.")] = None
    gpus: _Whole = 0
    gpu_type: _Text = ""
    gpu_mem_max_b: Annotated[
        _Whole | None, Meta(description="Largest use of GPU memory that was seen, of one GPU; null: not known.")
    ] = None
    gpu_mem_total_b: Annotated[_Whole | None, Meta(description="Memory of that GPU; null: not known.")] = None
    predicted_s: Annotated[
        _Seconds | None,
        Meta(description="Median run time that the model expected at its submission; null: not recorded."),
    ] = None


class EstimatorError(Struct, kw_only=True, frozen=True):
    """The error of one estimator on the past runs, each predicted from what was known before it."""

    estimator: Estimator
    error: Annotated[float, Meta(description="Mean relative error, 0.1 for 10 %.")]
    runs: Annotated[int, Meta(description="Runs that it was measured on.")]


class ProgramEstimate(Struct, kw_only=True, frozen=True):
    """The expected run time and memory of a job of a known program on its requested GPUs, and the estimator used."""

    program: Annotated[_Text, Meta(description="The program's fingerprint.")]
    steps: Annotated[_Whole | None, Meta(description="Steps that are declared; null: none.")] = None
    gpu: Annotated[_Text, Meta(description="GPU type of the estimate; empty: not known.")] = ""
    gpus: _Whole = 0
    estimator: Annotated[Estimator, Meta(description="Which estimator gives the run time; empty: none.")] = ""
    step_s: _MaybeSeconds = None
    run_s: _MaybeSeconds = None
    run_low_s: _MaybeSeconds = None
    run_high_s: _MaybeSeconds = None
    coverage: Annotated[float | None, Meta(description="Share of runs expected from run_low_s to run_high_s.")] = None
    runs: Annotated[_Whole, Meta(description="Number of earlier runs that the run time is based on.")] = 0
    memory_b: _MaybeBytes = None
    memory_low_b: _MaybeBytes = None
    memory_high_b: _MaybeBytes = None
    capacity_b: Annotated[
        _Whole | None, Meta(description="Bytes of one GPU that a program can use; null: type not known.")
    ] = None
    fits: Annotated[_Text, Meta(description="fits, does not fit, too close to tell; empty: not known.")] = ""
    basis: Annotated[_Text, Meta(description="What run time and memory are based on.")] = ""
    refused: Annotated[_Text, Meta(description="Why there is no run time; empty where there is one.")] = ""
    errors: Annotated[list[EstimatorError], Meta(max_length=4, description="Measured errors of the estimators.")] = []


class ProgramRunsAnswer(Struct, kw_only=True, frozen=True):
    """The caller's own completed runs of a program, the newest first."""

    runs: Annotated[list[ProgramRun], Meta(max_length=MAX_RUNS)]


def program_lines(named: Sequence[tuple[str, ProgramEstimate]], columns: int = COLUMNS) -> list[str]:
    """Return the lines of several requests, those with the same text together; names may be empty."""
    said: dict[str, list[str]] = {}
    for name, one in named:
        said.setdefault(_words(one), []).append(name)
    lines: list[str] = []
    for words, names in said.items():
        whose = ", ".join(filter(None, names))
        lines += bullet(f"{whose}: {words}" if whose else words, columns)
    return lines


def _words(one: ProgramEstimate) -> str:
    parts = ["; ".join(filter(None, (_run_time(one), _memory(one)))) + (f", from {one.basis}" if one.basis else "")]
    if len(one.errors) > 1:
        measured = ", ".join(f"{_name(each.estimator)} {say_percent(each.error)} ({each.runs})" for each in one.errors)
        parts.append(f"mean error on past runs: {measured}")
    return harmless("; ".join(filter(None, parts)))


def _run_time(one: ProgramEstimate) -> str:
    if one.run_s is None:
        return f"no run time: {one.refused}"
    found = f"run time {say_duration(one.run_s)}"
    if one.estimator != "own runs":  # the basis counts them
        found += f" by {_name(one.estimator)}"
    if one.run_low_s is not None and one.run_high_s is not None and one.coverage is not None:
        found += (
            f" ({say_duration(one.run_low_s)} to {say_duration(one.run_high_s)} in {say_percent(one.coverage)} of runs)"
        )
    return found


def _memory(one: ProgramEstimate) -> str:
    """Return the memory need and the verdict on it."""
    if one.memory_high_b is None:
        return ""
    need = f"at most {format_size(one.memory_high_b)}"
    if one.memory_b is not None and one.memory_low_b is not None:
        need = f"{format_size(one.memory_b)} ({format_size(one.memory_low_b)} to {format_size(one.memory_high_b)})"
    has = "" if one.capacity_b is None else f" of {format_size(one.capacity_b)}"
    return f"GPU memory {need}{has}" + (f", {one.fits}" if one.fits else "")


def _name(estimator: str) -> str:
    return _NAMES.get(estimator, estimator)

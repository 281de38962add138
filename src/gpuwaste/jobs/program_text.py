"""What is expected of a job's program as text: the run time and which estimator says so, memory, what was measured."""

from collections.abc import Mapping, Sequence

from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_size, say_duration
from gpuwaste.jobs.program_estimate import ProgramEstimate
from gpuwaste.show.layout import bullet

_NAMES: Mapping[str, str] = {"history": "the model of job history"}


def program_lines(named: Sequence[tuple[str, ProgramEstimate]]) -> list[str]:
    """Return the lines of several requests, those of which the same is said together; names may be empty."""
    said: dict[str, list[str]] = {}
    for name, one in named:
        said.setdefault(_words(one), []).append(name)
    lines: list[str] = []
    for words, names in said.items():
        whose = ", ".join(filter(None, names))
        lines += bullet(f"{whose}: {words}" if whose else words)
    return lines


def _words(one: ProgramEstimate) -> str:
    parts = [_run_time(one), _memory(one)]
    if one.basis:
        parts.append(f"rests on {one.basis}")
    if len(one.errors) > 1:
        measured = ", ".join(f"{_name(each.estimator)} {each.error:.0%} ({each.runs})" for each in one.errors)
        parts.append(f"mean error on past runs: {measured}")
    return harmless("; ".join(filter(None, parts)))


def _run_time(one: ProgramEstimate) -> str:
    if one.run_s is None:
        return f"no run time: {one.refused}"
    found = f"run time {say_duration(one.run_s)} by {_name(one.estimator)}"
    if one.run_low_s is not None and one.run_high_s is not None and one.coverage is not None:
        found += f" ({say_duration(one.run_low_s)} to {say_duration(one.run_high_s)} in {one.coverage:.0%} of runs)"
    return found


def _memory(one: ProgramEstimate) -> str:
    """Return the need and the verdict."""
    if one.memory_high_b is None:
        return ""
    need = f"at most {format_size(one.memory_high_b)}"
    if one.memory_b is not None and one.memory_low_b is not None:
        need = f"{format_size(one.memory_b)} ({format_size(one.memory_low_b)} to {format_size(one.memory_high_b)})"
    has = "" if one.capacity_b is None else f" of {format_size(one.capacity_b)}"
    return f"GPU memory {need}{has}" + (f", {one.fits}" if one.fits else "")


def _name(estimator: str) -> str:
    return _NAMES.get(estimator, estimator)

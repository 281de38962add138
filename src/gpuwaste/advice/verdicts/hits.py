"""Definition of a hit: for each target, whether it came true when a run ended. The only one, for labels and scores.

A run that does not decide a target (a node that failed, a job that was cancelled before its start, GPUs with too few
agent samples) is neither hit nor miss.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

from gpuwaste.core.job_states import ENDED, FAILED

HIT_SHARE: Final = 0.5
"""Share of an array's known runs from which on the target came true."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended, as far as targets need it.

    `state` is Slurm's, "" if a log has none. `ran` is whether it started; `under` whether its GPUs' mean use was below
    the limit of core/underuse.py, `fewer` whether fewer of them reached it than it held: None if the ledger knows too
    little, or the run was too short. `at_limit` is whether it took its time limit or longer: None if it has no limit,
    or took no time.
    """

    state: str
    ran: bool = True
    under: bool | None = None
    fewer: bool | None = None
    at_limit: bool | None = None


def came_true(target: str, end: RunEnd) -> bool | None:
    """Return whether a target came true; None if the run does not decide it, and for a target that is not yes/no."""
    judge = _JUDGES.get(target)
    return None if judge is None else judge(end)


def all_ends() -> Iterator[tuple[str, RunEnd, bool]]:
    """Yield each target with each end that decides it, and the result: the definition as a table."""
    known = (None, False, True)
    for state, ran, under, fewer, late in product(sorted(ENDED), (False, True), known, known, known):
        end = RunEnd(state, ran, under, fewer, late)
        for target in _JUDGES:
            said = came_true(target, end)
            if said is not None:
                yield target, end, said


def _failure(end: RunEnd) -> bool | None:
    """FAILED or OUT_OF_MEMORY against COMPLETED."""
    return _either(end, FAILED, {"COMPLETED"})


def _failure_or_cancel(end: RunEnd) -> bool | None:
    """As failure, and CANCELLED after the start."""
    return _either(end, FAILED | {"CANCELLED"}, {"COMPLETED"}) if end.ran else None


def _timeout(end: RunEnd) -> bool | None:
    """TIMEOUT, or another end than COMPLETED at the time limit, against COMPLETED, FAILED and OUT_OF_MEMORY."""
    if end.at_limit is None:
        return None
    late = end.state == "TIMEOUT" or (end.at_limit and end.state != "COMPLETED")
    return True if late else _either(end, frozenset(), FAILED | {"COMPLETED", ""})


def _gpu_underused(end: RunEnd) -> bool | None:
    """Under-use as the ledger says it, of a run that completed."""
    return end.under if end.state == "COMPLETED" else None


def _gpus_needed(end: RunEnd) -> bool | None:
    """Fewer active GPUs than the job held."""
    return end.fewer


def _gpus(end: RunEnd) -> bool | None:
    """Under-use, or fewer active GPUs than the job held."""
    found = [value for value in (_gpu_underused(end), _gpus_needed(end)) if value is not None]
    return any(found) if found else None


def _either(end: RunEnd, bad: frozenset[str] | set[str], good: frozenset[str] | set[str]) -> bool | None:
    return True if end.state in bad else False if end.state in good else None


_JUDGES: Final[Mapping[str, Callable[[RunEnd], bool | None]]] = {
    "failure": _failure,
    "failure_or_cancel": _failure_or_cancel,
    "timeout": _timeout,
    "gpu_underused": _gpu_underused,
    "gpus_needed": _gpus_needed,
    "gpus": _gpus,
}
TARGETS: Final = tuple(_JUDGES)
DEFINITIONS: Final[Mapping[str, str]] = {name: str(judge.__doc__) for name, judge in _JUDGES.items()}

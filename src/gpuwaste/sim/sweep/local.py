"""Cases on processes of this host: a process that dies or takes too long fails its case, and another one goes on."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait

from gpuwaste.core.child_process import ChildEnded, ChildProcess
from gpuwaste.sim.sweep.results import SweepFolder, run_case
from gpuwaste.sim.sweep.study import SweepCase

Ended = Callable[[SweepCase, str], None]
Run = Callable[[SweepCase, SweepFolder], str]
_LOOK_S = 1.0  # how often cases that take too long are looked for


@dataclass(slots=True)
class _Worker:
    child: ChildProcess
    case: SweepCase | None = None
    until: float = 0.0


def run_locally(
    cases: Sequence[SweepCase],
    folder: SweepFolder,
    processes: int,
    timeout_s: float,
    ended: Ended,
    run: Run = run_case,
) -> None:
    """Run cases; `ended` is told each one with its error, "" for none. `run` is a function of a module.

    However this ends, no process is left; what has ended is kept.
    """
    left = list(reversed(cases))
    workers = [_started(folder, run) for _ in range(min(processes, len(cases)))]
    try:
        while left or any(worker.case for worker in workers):
            for worker in workers:
                if worker.case is None and left:
                    _give(worker, left.pop(), timeout_s)
            ready = set(wait([worker.child.pipe for worker in workers if worker.case], _LOOK_S))
            for place, worker in enumerate(workers):
                if worker.case is None:
                    continue
                error = _answer(worker, folder, answered=worker.child.pipe in ready, timeout_s=timeout_s)
                if error is None:
                    continue
                case, worker.case = worker.case, None
                ended(case, error)
                if not worker.child.alive and left:
                    worker.child.end()
                    workers[place] = _started(folder, run)
    finally:
        for worker in workers:
            worker.child.end()


def _give(worker: _Worker, case: SweepCase, timeout_s: float) -> None:
    worker.case, worker.until = case, time.monotonic() + timeout_s
    worker.child.ask(case)


def _answer(worker: _Worker, folder: SweepFolder, *, answered: bool, timeout_s: float) -> str | None:
    """Return the error of the worker's case, "" for none; None where it still runs."""
    case = worker.case
    if case is None:
        return None
    if answered:
        try:
            error: str = worker.child.answer()
        except ChildEnded as ended:
            error = str(ended)
            folder.keep(case, error=error)
        return error
    if time.monotonic() < worker.until:
        return None
    worker.child.end()
    error = f"took longer than {timeout_s:g} s"
    folder.keep(case, error=error)
    return error


def _started(folder: SweepFolder, run: Run) -> _Worker:
    return _Worker(ChildProcess(partial(_run_case, folder=folder, run=run)))


def _run_case(case: SweepCase, folder: SweepFolder, run: Run) -> str:
    return run(case, folder)

"""Cases on processes of this host: a process that dies or takes too long fails its case, and another one goes on."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from gpuwaste.sim.sweep.results import SweepFolder, run_case
from gpuwaste.sim.sweep.study import Case

Ended = Callable[[Case, str], None]
Run = Callable[[Case, SweepFolder], str]
_LOOK_S = 1.0  # how often cases that take too long are looked for


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    case: Case | None = None
    until: float = 0.0


def run_locally(
    cases: Sequence[Case],
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
            ready = set(wait([worker.pipe for worker in workers if worker.case], _LOOK_S))
            for place, worker in enumerate(workers):
                if worker.case is None:
                    continue
                error = _answer(worker, folder, answered=worker.pipe in ready, timeout_s=timeout_s)
                if error is None:
                    continue
                case, worker.case = worker.case, None
                ended(case, error)
                if not worker.process.is_alive() and left:
                    _end(worker)
                    workers[place] = _started(folder, run)
    finally:
        for worker in workers:
            _end(worker)


def _give(worker: _Worker, case: Case, timeout_s: float) -> None:
    worker.case, worker.until = case, time.monotonic() + timeout_s
    with suppress(OSError):  # a process that is gone is seen at once as the end of its pipe
        worker.pipe.send(case)


def _answer(worker: _Worker, folder: SweepFolder, *, answered: bool, timeout_s: float) -> str | None:
    """Return the error of the worker's case, "" for none; None where it still runs."""
    case = worker.case
    if case is None:
        return None
    if answered:
        try:
            error: str = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            error = f"its process ended with exit code {worker.process.exitcode}"
            folder.keep(case, error=error)
        return error
    if time.monotonic() < worker.until:
        return None
    worker.process.kill()
    worker.process.join()
    error = f"took longer than {timeout_s:g} s"
    folder.keep(case, error=error)
    return error


def _started(folder: SweepFolder, run: Run) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, folder, run), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    if worker.process.is_alive():
        worker.process.terminate()
    worker.process.join()


def _serve(pipe: Connection, folder: SweepFolder, run: Run) -> None:
    """Run the cases that come, in a process of its own; Ctrl-C is for the one that gave them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            pipe.send(run(pipe.recv(), folder))

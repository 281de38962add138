"""python -m tools.lift PID: a process and all below it run as any other again, whatever they were scheduled as.

tools/run-tests keeps the odd host out of the demo's way by SCHED_IDLE. When the demo has ended that would leave it
nothing on a host where somebody else computes.
"""

import os
import sys
from collections.abc import Sequence

import psutil


def lift(pid: int) -> int:
    """Return how many threads were lifted; goes on until there is none left, since a fork keeps its parent's policy."""
    lifted = 0
    while found := [thread for thread in _threads(pid) if _is_idle(thread)]:
        for thread in found:
            try:
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
            except ProcessLookupError:
                continue
            lifted += 1
    return lifted


def _threads(pid: int) -> list[int]:
    threads: list[int] = []
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    for process in processes:
        try:
            threads += [thread.id for thread in process.threads()]
        except psutil.NoSuchProcess:
            continue
    return threads


def _is_idle(thread: int) -> bool:
    try:
        return os.sched_getscheduler(thread) == os.SCHED_IDLE
    except ProcessLookupError:
        return False


def main(arguments: Sequence[str]) -> int:
    """Lift the process."""
    lift(int(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

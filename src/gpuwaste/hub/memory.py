"""The memory of a process of many threads that judges thousands of runs for one answer."""

import ctypes
import gc
from typing import Final

_M_ARENA_MAX: Final = -8  # mallopt(3), glibc's malloc.h
_ARENAS: Final = 2
_YOUNG: Final = 20_000  # more objects than at the last collection; Python says 700
_OLDER: Final = 20


def use_few_arenas() -> None:
    """Let threads share their heaps; before there are threads.

    glibc gives threads up to eight heaps for each processor, and what a thread frees stays in its own: with a thousand
    agents that is some hundred megabytes that nobody uses. Another C library has no such heaps: nothing is done.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def collect_seldom() -> None:
    """Leave alone what is there now, and look at new objects seldom.

    What was imported lives as long as the process. A report's objects live until it is sent and have no cycles: to go
    through all of them with every 700 more takes a tenth of its time, and finds nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)

"""What the processes of a sweep do in tests: cases that die, hang or pass, by the seed."""

import os
import time

from gpuwaste.sim.sweep_results import SweepFolder
from gpuwaste.sim.sweep_study import SweepCase

DIES, HANGS = 3, 5


def run(case: SweepCase, folder: SweepFolder) -> str:
    """Pass, die or hang."""
    if case.seed == DIES:
        os._exit(9)
    while case.seed == HANGS:
        time.sleep(60)
    folder.keep(case, rows=[{"pid": os.getpid()}], seconds=0)
    return ""

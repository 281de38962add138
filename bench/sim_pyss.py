"""pyss' schedulers on a trace: the peer of bench/sim.py. The checkout has to be one that Python 3 can import."""

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.trace import Trace

_NAMES: Final = {
    "easy": ("easy_scheduler", "EasyBackfillScheduler"),
    "conservative": ("conservative_scheduler", "ConservativeScheduler"),
}


def pyss_starts(checkout: Path, trace: Trace, processors: int, scheduler: str) -> tuple[NDArray[np.int64], float]:
    """Return the starts by pyss and the CPU seconds that it took; it takes no job of zero seconds: those run one."""
    sys.path[:0] = [str(checkout / "src"), str(checkout / "src" / "schedulers")]
    job_of = import_module("base.prototype").Job
    jobs = [
        job_of(id=k, submit_time=s, actual_run_time=max(r, 1), user_estimated_run_time=e, num_required_processors=p)
        for k, (s, r, e, p) in enumerate(
            zip(*(c.tolist() for c in (trace.submit, trace.run_s, trace.limit_s, trace.procs)), strict=True)
        )
    ]
    module, name = _NAMES[scheduler]
    simulator = import_module("simulator").Simulator(jobs, processors, getattr(import_module(module), name)(processors))
    began = time.process_time()
    simulator.run()
    return np.array([job.start_to_run_at_time for job in jobs], dtype=np.int64), time.process_time() - began

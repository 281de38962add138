"""GPU requests as large as what the ledger saw in use: the GPUs that the run itself used at all, however little."""

from dataclasses import replace
from typing import Final

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.sim.schedule_metrics import freed_j
from gpuwaste.sim.whatif import WhatIfCase, WhatIfChange

TITLE: Final = "GPU requests as large as what was used"
VALUE: Final = ""
_NOTES: Final = (
    "GPU use is known only after a run, so no user could have requested exactly this: the gain is an upper bound.",
    "Run times do not change: idle GPUs did not make a job faster.",
)
_LEAVES: Final = (
    "A job whose GPUs were all at 0 % all the time requests none: the waits of neither side include that job."
)
_ON_NODES: Final = "A job keeps its nodes, CPUs and memory; each of its nodes gets the same number of GPUs, rounded up."


def change(case: WhatIfCase, value: str) -> WhatIfChange:
    """Return the jobs with the GPUs that they used; what the ledger does not know stays as requested.

    A GPU counts as used if it was ever above 0 %: one at 3 % worked, and without it the job would have run longer. A
    run counts where enough of it is known and it was long enough, as in the rule of under-use. Raises UsageError where
    the machine counts something else.
    """
    del value
    if case.resource != "gpus":
        raise UsageError("what-if gpus: needs --resource gpus: the machine is a count of processors")
    table, trace = case.table, case.trace
    rule, rows = table.under_use, trace.row
    seen = np.full(len(trace), np.nan) if table.gpus_used is None else table.gpus_used[rows]
    known = np.isfinite(seen) & (table.gpu_coverage[rows] >= rule.min_coverage) & (table.run_s[rows] > rule.min_s)
    used = np.where(known, seen, trace.procs)
    size = np.minimum(np.maximum(np.ceil(used), 0).astype(np.int64), trace.procs)
    held = (trace.run_s * trace.procs).astype(np.float64)
    none, whole = (size == 0) & (trace.procs > 0), held.sum()
    facts = {
        "jobs": len(trace),
        "jobs with known GPU use": int(np.count_nonzero(known)),
        "share of GPU-hours known": round(float(held[known].sum() / whole), 6) if whole else 0.0,
        "jobs with a smaller request": int(np.count_nonzero((size < trace.procs) & ~none)),
        "jobs that used no GPU": int(np.count_nonzero(none)),
    }
    gpus = table.gpus.copy()
    gpus[rows] = size
    kept, notes = replace(trace, procs=size), _NOTES if case.cluster is None else (*_NOTES, _ON_NODES)
    if case.counts:
        kept, notes = kept.take(np.flatnonzero(~none)), (*notes, _LEAVES)
    return WhatIfChange(
        kept, case.processors, facts, notes, table=replace(table, gpus=gpus), saved_j=freed_j(table, trace, size)
    )

"""Leaves out submissions that the site's policies would have rejected."""

from typing import Final

import numpy as np

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.sim.schedule_metrics import used_j
from gpuwaste.sim.whatif import WhatIfCase, WhatIfChange

TITLE: Final = "without the jobs that the policies would have rejected"
VALUE: Final = ""
_NOTES: Final = (
    "Each job is judged by what was known when it was submitted; every policy that is not off counts as rejecting.",
    "A rejected job is left out; in reality its user corrects it and submits it again.",
)


def change(case: WhatIfCase, value: str) -> WhatIfChange:
    """Return the jobs that policies would have accepted. Raises UsageError, NoDataError."""
    del value
    if case.refused is None:
        raise UsageError("what-if policy: no policies are given")
    refused = case.refused()[case.trace.row]
    if refused.all():
        raise NoDataError("what-if policy: the policies would have rejected every job")
    facts = {
        "jobs": len(case.trace),
        "jobs rejected": int(np.count_nonzero(refused)),
        "hours held by rejected jobs": round(float((case.trace.run_s * case.trace.procs)[refused].sum() / 3600), 3),
    }
    drawn = used_j(case.table)
    saved = None if drawn is None else np.where(np.isin(np.arange(len(drawn)), case.trace.row[refused]), drawn, 0.0)
    return WhatIfChange(case.trace.take(np.flatnonzero(~refused)), case.processors, facts, _NOTES, saved_j=saved)

"""Time limits from the user's own history: a quantile of the last jobs that had ended before the submission."""

from dataclasses import replace
from typing import Final

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.core.units import MINUTE_S
from gpuwaste.sim.believed_times import UNKNOWN, expected
from gpuwaste.sim.whatif import WhatIfCase, WhatIfChange

TITLE: Final = "time limits from each user's ended jobs"
VALUE: Final = "Q"
LEVEL: Final = 0.95
_LEAST, _MOST = 0.5, 0.999
_NOTES: Final = (
    "A limit is never above what the user gave; without ten ended jobs of the user it stays as given.",
    "A job that reaches its new limit is killed, counted, and not submitted again.",
)


def change(case: WhatIfCase, value: str) -> WhatIfChange:
    """Return the jobs with limits of that quantile (default LEVEL) in whole minutes. Raises UsageError."""
    level = _level(value)
    trace = case.trace
    past = expected(case.history, level)[case.places][trace.row]
    minutes = np.maximum(-(-past // MINUTE_S) * MINUTE_S, MINUTE_S)
    limit = np.where(past == UNKNOWN, trace.limit_s, np.minimum(minutes, trace.limit_s))
    killed = trace.run_s > limit
    facts = {
        "jobs": len(trace),
        "jobs with a shorter limit": int(np.count_nonzero(limit < trace.limit_s)),
        "jobs killed at the new limit": int(np.count_nonzero(killed)),
        "hours held by killed jobs": round(float((limit * trace.procs)[killed].sum() / 3600), 3),
    }
    run = np.minimum(trace.run_s, limit)
    return WhatIfChange(replace(trace, limit_s=limit, run_s=run), case.processors, facts, _NOTES)


def _level(value: str) -> float:
    try:
        level = float(value) if value else LEVEL
    except ValueError:
        level = -1.0
    if not _LEAST <= level <= _MOST:
        raise UsageError(f"what-if limits={value[:20]!r}: expected a quantile from {_LEAST} to {_MOST}")
    return level

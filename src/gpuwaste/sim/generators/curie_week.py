"""Weeks of a log, such as Curie's, resampled: a block bootstrap of its days that keeps the day of the week.

Each day of the drawn weeks is one full day of the log of the same day of the week, which keeps the cycles of a day
and of a week, and the bursts within a day. Weeks of the log that are nearly empty, and the incomplete ones at both
ends, are not drawn from. Users and accounts keep their numbers. `week` plays one week of the log as it was instead.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpuwaste.core.errors import NoDataError
from gpuwaste.core.units import DAY_S
from gpuwaste.sim.generated_load import Ints, JobLog, Load
from gpuwaste.sim.parameters import SEED, Parameter
from gpuwaste.sim.trace import trace_of

TITLE: Final = "weeks of a log (Curie's, given by --swf), drawn again day by day"
NEEDS_LOG: Final = True
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "weeks": Parameter(1, 1, 520, "weeks to draw", whole=True),
    "week": Parameter(0, 0, 5200, "use this week of the log unchanged, counted from 1; 0 draws days", whole=True),
    "seed": SEED,
}
_DAYS: Final = 7
_FEW: Final = 0.1  # a week with less than this share of the median week's jobs is nearly empty


def drawn(values: Mapping[str, float], log: JobLog | None) -> Load:
    """Draw a load; see generators. Raises NoDataError where the log has no full week, or not the requested one."""
    if log is None:
        raise NoDataError("curie_week: no log to draw from: name one with --swf, --sacct, --csv or --store")
    trace, _ = trace_of(log.table, log.processors)
    begin = int(trace.submit[0]) // DAY_S * DAY_S
    day = (trace.submit - begin) // DAY_S
    bounds = np.searchsorted(day, np.arange(int(day[-1]) + 2))
    weeks = _weeks(bounds)
    rng = np.random.default_rng(int(values["seed"]))
    if chosen := int(values["week"]):
        if chosen > (len(bounds) - 1) // _DAYS:
            raise NoDataError(f"curie_week: {log.text} has {(len(bounds) - 1) // _DAYS} whole weeks: no week {chosen}")
        picked = np.array([chosen - 1])
    else:
        picked = weeks[rng.integers(0, len(weeks), int(values["weeks"]) * _DAYS)] if len(weeks) else weeks
    if not len(picked):
        raise NoDataError(f"curie_week: {log.text} contains no week with jobs on most days")
    days = [(place, _DAYS * int(week) + place % _DAYS) for place, week in enumerate(_each_day(picked, chosen))]
    rows = np.concatenate([np.arange(bounds[source], bounds[source + 1]) for _, source in days])
    shift = np.concatenate(
        [np.full(bounds[source + 1] - bounds[source], (place - source) * DAY_S) for place, source in days]
    )
    if not len(rows):
        raise NoDataError(f"curie_week: {log.text}: no job on the days that were drawn")
    account = log.table.account.codes[trace.row].astype(np.int64)
    return Load(
        submit=trace.submit[rows] - begin + shift.astype(np.int64),
        run_s=trace.run_s[rows],
        limit_s=trace.limit_s[rows],
        procs=trace.procs[rows],
        user=trace.user[rows],
        account=account[rows],
        processors=log.processors or int(trace.procs.max()),
    )


def _each_day(picked: Ints, chosen: int) -> Ints:
    return np.repeat(picked, _DAYS) if chosen else picked


def _weeks(bounds: Ints) -> Ints:
    """Return the full weeks, from 0, that are not nearly empty."""
    whole = (len(bounds) - 1) // _DAYS
    counts = np.diff(bounds[: whole * _DAYS + 1 : _DAYS])
    return np.flatnonzero(counts > _FEW * np.median(counts)) if whole else np.empty(0, dtype=np.int64)

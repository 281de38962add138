"""Repeat the load, one copy after the other, each begun at the same time of the day (and of the week).

A copy begins a whole number of weeks after the one before it where the load spans more than 6 days, else of days. Each
copy may be shuffled: with `shuffle` the jobs of a copy keep their instants and swap what they request.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.core.units import DAY_S, WEEK_S
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.parameters import SEED, Parameter
from gpuwaste.sim.time_travel import MOST_JOBS, of_rows

TITLE: Final = "the load is played this many times, one after the other"
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "repeat": Parameter(1, 1, 1000, "times that the load is played", whole=True),
    "shuffle": Parameter(0, 0, 1, "1: jobs of the copies swap their submit times", whole=True),
    "seed": SEED,
}


def applied(table: JobTable, values: Mapping[str, float]) -> JobTable:
    """Return the table after the step; see steps. Raises UsageError for too many jobs."""
    times, n = int(values["repeat"]), len(table)
    if times * n > MOST_JOBS:
        raise UsageError(f"--step repeat={times}: {times * n:,} jobs: expected at most {MOST_JOBS:,}")
    span = int(table.submit[-1] - table.submit[0]) + 1
    unit = WEEK_S if span > WEEK_S - DAY_S else DAY_S
    period = -(-span // unit) * unit
    rng = np.random.default_rng(int(values["seed"]))
    copies = [np.arange(n), *(rng.permutation(n) if values["shuffle"] else np.arange(n) for _ in range(times - 1))]
    submit = np.tile(table.submit, times) + np.repeat(np.arange(times) * period, n)
    return of_rows(table, np.concatenate(copies), submit)

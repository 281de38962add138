"""Add a burst: jobs like those of the load, drawn from it at random, all submitted within a short time."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.parameters import SEED, Parameter
from gpuwaste.sim.time_travel import of_rows

TITLE: Final = "adds this many jobs, drawn from the load, submitted within a short time"
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "burst": Parameter(100, 1, 5_000_000, "jobs to add", whole=True),
    "at": Parameter(0.5, 0, 1, "when the burst begins, as a share of the time from first to last submission"),
    "width": Parameter(3600, 1, 31_536_000, "seconds that the burst lasts", whole=True),
    "seed": SEED,
}


def applied(table: JobTable, values: Mapping[str, float]) -> JobTable:
    """Return the table after the step; see steps."""
    rng = np.random.default_rng(int(values["seed"]))
    count, n = int(values["burst"]), len(table)
    first, last = int(table.submit[0]), int(table.submit[-1])
    begin = first + int((last - first) * values["at"])
    instants = begin + np.sort(rng.integers(0, int(values["width"]), count))
    rows = np.concatenate([np.arange(n), rng.integers(0, n, count)])
    return of_rows(table, rows, np.concatenate([table.submit, instants]))

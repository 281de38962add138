"""Thin the load: each job stays with a probability, drawn for each job independently."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.parameters import SEED, Parameter
from gpuwaste.sim.time_travel import of_rows

TITLE: Final = "each job is kept with this probability"
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "thin": Parameter(1, 0, 1, "probability that a job is kept"),
    "seed": SEED,
}


def applied(table: JobTable, values: Mapping[str, float]) -> JobTable:
    """Return the table after the step; see steps."""
    stays = np.random.default_rng(int(values["seed"])).random(len(table)) < values["thin"]
    rows = np.flatnonzero(stays)
    return of_rows(table, rows, table.submit[rows])

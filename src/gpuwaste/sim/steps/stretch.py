"""Stretch the time between submissions: above 1 the load is lighter, below 1 it is heavier. Run times stay."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.parameters import Parameter
from gpuwaste.sim.time_travel import of_rows

TITLE: Final = "times between submissions are multiplied; run times do not change"
PARAMETERS: Final[Mapping[str, Parameter]] = {"stretch": Parameter(1, 0.001, 1000, "factor of the times between jobs")}


def applied(table: JobTable, values: Mapping[str, float]) -> JobTable:
    """Return the table after the step; see steps."""
    first = table.submit[0]
    submit = first + np.floor((table.submit - first) * values["stretch"]).astype(np.int64)
    return of_rows(table, np.arange(len(table)), submit)

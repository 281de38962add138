"""A history as it might have been: steps that change a table of jobs before it is simulated, in the order given."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.jobs.history.job_table import ABSENT, Ints, JobTable
from gpuwaste.sim import steps
from gpuwaste.sim.parameters import NamedParameters, Parameter, read_named

MOST_JOBS: Final = 20_000_000  # of a table that steps make; 1 KB each is 20 GB
_LAST: Final = 2**40  # the latest instant, UTC seconds: sums of such instants do not overflow


class TravelStep(Protocol):
    """A file of steps/."""

    TITLE: str
    PARAMETERS: Mapping[str, Parameter]

    def applied(self, table: JobTable, values: Mapping[str, float]) -> JobTable:
        """Return the table after the step."""
        ...


STEPS: Final[ModuleRegistry[TravelStep]] = ModuleRegistry(steps, "TITLE", "PARAMETERS", "applied")


def read_steps(words: Sequence[str]) -> list[NamedParameters]:
    """Read the arguments of --step, in their order. Raises UsageError."""
    known = {name: step.PARAMETERS for name, step in STEPS.items()}
    return [read_named(each, known, "--step") for each in words]


def travelled(table: JobTable, chosen: Sequence[NamedParameters]) -> JobTable:
    """Return the table after the steps. Raises NoDataError where a step leaves no job, UsageError for too many."""
    for step in chosen:
        table = STEPS[step.name].applied(table, step.values)
        if not len(table):
            raise NoDataError(f"--step {step.text()}: leaves no job")
        if int(table.submit[-1]) > _LAST:
            raise UsageError(f"--step {step.text()}: the last job would be submitted after the year 36000")
    return table


def of_rows(table: JobTable, rows: NDArray[np.intp], submit: Ints) -> JobTable:
    """Return some rows of a table, repeated ones included, with new submissions; starts become the submissions.

    Rows that are there twice get new job ids, above all others. Raises UsageError for more than MOST_JOBS.
    """
    if len(rows) > MOST_JOBS:
        raise UsageError(f"--step: {len(rows):,} jobs: expected at most {MOST_JOBS:,}")
    ids = table.job_id[rows].copy()
    again = np.ones(len(rows), dtype=np.bool_)
    again[np.unique(rows, return_index=True)[1]] = False
    ids[again] = int(table.job_id.max(initial=0)) + 1 + np.arange(np.count_nonzero(again))
    order = np.lexsort((ids, submit))
    taken, submit = table.take(rows[order]), submit[order]
    run = np.nan_to_num(taken.run_s, nan=0.0).astype(np.int64)
    return replace(
        taken,
        job_id=ids[order],
        submit=submit,
        start=np.where(taken.start >= 0, submit, ABSENT),
        end=np.where(taken.end >= 0, submit + run, ABSENT),
        end_rule="submit + run",
    )

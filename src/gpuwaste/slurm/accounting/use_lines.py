"""What accounting has of the use of a job's GPUs, as lines of a table like those of sacct_table.py."""

from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.accounted_use import AccountedUse, StepPeaks
from gpuwaste.slurm.accounting.jobstats_comment import jobstats_use
from gpuwaste.slurm.accounting.line_format import NULL, SEPARATOR, line_text

_KEY: Final = ("cluster", "job_id", "run_start")
USE_LINE_COLUMNS: Final = (*_KEY, *(field.name for field in fields(AccountedUse)))
"""The columns of a line, by their names in table accounted_use."""


def use_lines(job: Mapping[str, str], comment: str, peaks: StepPeaks | None) -> list[str]:
    """Return the lines of a job with these columns, AdminComment and peaks of its steps.

    Raises ParseError where jobstats' summary cannot be read, or has names that no line can hold.
    """
    gpus, start, end = (None if job[name] == NULL else int(job[name]) for name in ("gpus", "start", "end"))
    if not gpus:
        return []
    uses = (*jobstats_use(comment, gpus, start, end), *(() if peaks is None else peaks.use()))
    if not all((use.node + use.gpu).isprintable() for use in uses):
        raise ParseError("jobstats: a name with a control character")
    return [SEPARATOR.join((*(job[name] for name in _KEY), *line_text(astuple(use)))) for use in uses]

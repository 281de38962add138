"""A history that a generator draws from."""

from dataclasses import dataclass

from gpuwaste.jobs.history.table import JobTable


@dataclass(frozen=True, slots=True)
class JobLog:
    """Jobs, the size of their machine where it is known, and what they are from, in words."""

    table: JobTable
    processors: int | None
    text: str

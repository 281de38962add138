"""What was said of runs at their submission and while they ran, as documents of the ledger ask for it.

Nothing is said here: the room that advises has a part that is a subclass, which the hub's parts find.
"""

from collections.abc import Collection, Sequence
from typing import Self

from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.scope import Scope
from gpuwaste.ledger.reports.job_types import Advice, SaidAgain
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey


class SaidOfRuns(Part):
    """Nothing was said of any run."""

    @classmethod
    def part_of(cls, _: Parts) -> Self:
        """Return the part of a hub."""
        return cls()

    def advice(self, _scope: Scope, _runs: Sequence[JobRecord]) -> list[Advice]:
        """Return what was said of a job's submission and modifications, of the runs that the caller may see."""
        return []

    def advice_of(self, _scope: Scope, runs: Sequence[JobRecord]) -> list[list[Advice]]:
        """Return for each of the runs what was said of it."""
        return [[] for _ in runs]

    def again(self, _runs: Collection[RunKey]) -> list[SaidAgain]:
        """Return what was said of runs while they ran, the oldest first."""
        return []

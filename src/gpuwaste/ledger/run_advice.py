"""Advice on runs at their submission, and predictions while they ran, for documents of the ledger.

There is none here: the room that advises has a part that is a subclass, which the hub's parts find.
"""

from collections.abc import Collection, Sequence
from typing import Self

from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.scope import Scope
from gpuwaste.ledger.reports.job_types import Advice, SaidAgain
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey


class RunAdvice(Part):
    """There is no advice on any run."""

    @classmethod
    def part_of(cls, _: Parts) -> Self:
        """Return the part of a hub."""
        return cls()

    def advice(self, _scope: Scope, _runs: Sequence[JobRecord]) -> list[Advice]:
        """Return the advice at a job's submission and modifications, of the runs that the caller may see."""
        return []

    def advice_of(self, _scope: Scope, runs: Sequence[JobRecord]) -> list[list[Advice]]:
        """Return the advice on each of the runs."""
        return [[] for _ in runs]

    def again(self, _runs: Collection[RunKey]) -> list[SaidAgain]:
        """Return the predictions of runs while they ran, the oldest first."""
        return []

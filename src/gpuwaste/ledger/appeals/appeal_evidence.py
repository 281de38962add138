"""What an appeal is about, beyond the ledger: advice at sbatch, and actions of rules.

There is none here: the room that acts has a part that is a subclass, which the hub's parts find.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from gpuwaste.core.parts import Part, Parts
from gpuwaste.ledger.reports.job_types import Appeal, AppealKind
from gpuwaste.slurm.accounting.job_record import JobRecord


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an appeal is about: the id of the verdict or action, and what was known then, for staff."""

    kind: AppealKind
    about: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    runs: Sequence[JobRecord] = ()


class AppealEvidence(Part):
    """Knows neither advice nor actions."""

    @classmethod
    def part_of(cls, _: Parts) -> Self:
        """Return the part of a hub."""
        return cls()

    def action(self, _runs: Sequence[JobRecord]) -> Evidence | None:
        """Return the last action that was done to one of these runs, None for none. Raises StoreError."""
        return None

    def advice(self, _runs: Sequence[JobRecord]) -> Evidence | None:
        """Return the last advice that the owner saw on one of these runs, None for none. Raises StoreError."""
        return None

    def verdict(self, _user: str, _verdict: str) -> Evidence | None:
        """Return the advice with an id that a user saw, None for none. Raises StoreError."""
        return None

    def closed(self, _appeal: Appeal) -> None:
        """Tell the user that an appeal of theirs was closed. Raises StoreError."""

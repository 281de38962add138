"""Runs for which the site's rules wait, for documents of the ledger and for answers on idleness.

There are none here: the room that acts has a part that is a subclass, which the hub's parts find.
"""

from collections.abc import Collection
from typing import Self

from gpuwaste.core.parts import Part, Parts
from gpuwaste.ledger.reports.job_types import KeptRun
from gpuwaste.slurm.run_key import RunKey


class RunKeeps(Part):
    """No run is kept."""

    @classmethod
    def part_of(cls, _: Parts) -> Self:
        """Return the part of a hub."""
        return cls()

    def kept(self, _runs: Collection[RunKey], _now: int) -> list[KeptRun]:
        """Return which of these runs are kept at an instant, UTC seconds. Raises StoreError."""
        return []

    def kept_until(self, _run: RunKey, _now: int) -> int | None:
        """Return until when a run is kept, UTC seconds; None where it is not kept at `_now`. Raises StoreError."""
        return None

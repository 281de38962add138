"""Runs whose owners asked that nothing ends them.

There are none here: a room above that takes such requests has a part that is a subclass, which the hub's parts find.
"""

from typing import Self

from gpuwaste.core.parts import Part, Parts
from gpuwaste.slurm.run_key import RunKey


class KeptJobs(Part):
    """No run is kept."""

    @classmethod
    def part_of(cls, _: Parts) -> Self:
        """Return the part of a hub."""
        return cls()

    def kept_until(self, _run: RunKey, _now: int) -> int | None:
        """Return until when a run is kept, UTC seconds; None where it is not kept at `_now`. Raises StoreError."""
        return None

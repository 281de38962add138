"""Accounting's GPU count bounds what counts for a run: how many of the GPUs that agents named, and which.

The order is the same whenever it is asked for: what a job's user could have forged and what is no GPU that the driver
lists come last, and of the others those of which most is known come first. The store's gpu_use.sql has it too.
"""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from gpuwaste.core.hour import MISSING_PREFIX
from gpuwaste.core.sample import MapSource

FORGEABLE: Final = MapSource.ENVIRON
"""What agents before 0.2 read, which a job's user can write."""


class Named(Protocol):
    """A GPU that an agent named for a run."""

    @property
    def node(self) -> str:
        """The node."""
        ...

    @property
    def gpu_uuid(self) -> str:
        """The GPU's UUID, or what stands for it."""
        ...

    @property
    def map_source(self) -> str:
        """How the agent knew."""
        ...

    @property
    def order_ms(self) -> int:
        """Milliseconds with a utilization, in the whole run."""
        ...


def order(use: Named) -> tuple[bool, bool, int, str, str]:
    """Return what the GPUs of a run are sorted by: accounting's count is cut off the front."""
    forgeable, missing = use.map_source == FORGEABLE, use.gpu_uuid.startswith(MISSING_PREFIX)
    return forgeable, missing, -use.order_ms, use.node, use.gpu_uuid


_Use = TypeVar("_Use", bound=Named)


def bounded(uses: Iterable[_Use], gpus: int | None) -> tuple[list[_Use], int]:
    """Return the GPUs that count for a run to which accounting gave `gpus`, and how many others were named.

    Where accounting does not tell (None), all count.
    """
    ordered = sorted(uses, key=order)
    if gpus is None:
        return ordered, 0
    return ordered[:gpus], max(0, len(ordered) - gpus)

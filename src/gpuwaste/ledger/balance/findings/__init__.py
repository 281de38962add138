"""Findings about jobs that kept GPUs from jobs that waited: a file each, with CAUSE, CLASS and `find(job)`.

Files here are found without registration. The kept GPU-time is not counted as waste of the job: others wasted it. A
job gets a finding only if it requested more than it used, and if another job waited that would have fitted otherwise.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.ledger.balance.findings._kept import KeptGpus
from gpuwaste.ledger.balance.types import BalanceClass
from gpuwaste.ledger.finding import Finding


class StrandFindingModule(Protocol):
    """A file of this package."""

    CAUSE: str
    CLASS: BalanceClass

    def find(self, job: KeptGpus) -> Iterator[Finding]:
        """Yield the finding of a job that kept GPUs from others in this class, if it used less than it requested."""
        ...


STRAND_FINDINGS: Final[ModuleRegistry[StrandFindingModule]] = ModuleRegistry(__name__, "CAUSE", "CLASS", "find")

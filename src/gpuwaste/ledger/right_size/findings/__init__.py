"""Findings about the size of requests, from the last runs of such jobs: a file each, with CAUSE and `find(jobs, site)`.

Files here are found without registration. They are advice: none of their time is counted as waste.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.ledger.finding import Finding
from gpuwaste.ledger.right_size.such_jobs import SizedSite, SuchJobs


class SizeFindingModule(Protocol):
    """A file of this package."""

    CAUSE: str

    def find(self, jobs: SuchJobs, site: SizedSite) -> Iterator[Finding]:
        """Yield the finding of such jobs, if any."""
        ...


SIZE_FINDINGS: Final[ModuleRegistry[SizeFindingModule]] = ModuleRegistry(__name__, "CAUSE", "find")


def size_findings(jobs: SuchJobs, site: SizedSite) -> list[Finding]:
    """Return what all files say of such jobs."""
    return [finding for module in SIZE_FINDINGS.values() for finding in module.find(jobs, site)]

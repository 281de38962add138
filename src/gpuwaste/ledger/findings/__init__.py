"""The findings: each file here is one cause of waste: CAUSE, its name for readers, and `find(jobs, settings)`.

Files here are found without registration. LIMITS of a file are its thresholds that query ledger_rows needs, by their
names there. Files that start with an underscore are shared helpers. No finding is made from unknown time: each requires
the coverage of the settings, or the mean of each GPU in accounting.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, Protocol

from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.ledger.balance.findings import STRAND_FINDINGS
from gpuwaste.ledger.finding import Finding
from gpuwaste.ledger.findings import many_small_jobs
from gpuwaste.ledger.ledger import ACCOUNTED, JobLedger, LedgerSettings
from gpuwaste.ledger.right_size.findings import SIZE_FINDINGS

CAUSE_ORDER: Final = (
    "one_gpu_of_many",
    "gpus_untouched",
    "gpus_opened_idle",
    "memory_resident",
    "idle_interactive",
    "idle_tail",
    "cpu_starved",
)
"""A wasted GPU-second of a run belongs to the first of these findings that covers it.

All but the last cover GPUs that no other one covers; cpu_starved covers all waste of its run and gets the rest.
"""
NOT_WASTE: Final = frozenset({"busy_hang", "few_sms", "low_use"})
"""Findings about time that is not counted as waste."""


class FindingModule(Protocol):
    """A file of this package."""

    CAUSE: str

    def find(self, jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
        """Yield the findings of some runs."""
        ...


FINDINGS: Final[ModuleRegistry[FindingModule]] = ModuleRegistry(__name__, "CAUSE", "find")


@cache
def limits() -> dict[str, float]:
    """Return the findings' thresholds that query ledger_rows needs, as its parameters."""
    found: dict[str, float] = {}
    for module in FINDINGS.values():
        found |= getattr(module, "LIMITS", {})
    return found


def cause_name(kind: str) -> str:
    """Return the readable name of a kind of finding; for a kind of another version, the kind itself."""
    for found in (FINDINGS, STRAND_FINDINGS, SIZE_FINDINGS):
        if kind in found:
            return found[kind].CAUSE
    return kind.replace("_", " ")


def causes(ledger: JobLedger, settings: LedgerSettings, kinds: Collection[str] | None = None) -> list[Finding]:
    """Return the findings of a single run, or only those of some `kinds`, the largest waste first."""
    asked = sorted(FINDINGS.keys() - {many_small_jobs.KIND}) if kinds is None else kinds
    found = [finding for kind in asked for finding in FINDINGS[kind].find([ledger], settings)]
    if any(device.use.accounted for device in ledger.devices):
        found = [replace(finding, evidence=finding.evidence | {"source": ACCOUNTED}) for finding in found]
    return sorted(found, key=lambda finding: (-finding.wasted_gpu_s, finding.kind))

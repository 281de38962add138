"""The findings: each file here is one cause of waste: CAUSE, its name for readers, and `find(jobs, settings)`.

A file is found by being here. LIMITS of a file are its thresholds that query ledger_rows needs, by their names there.
Files that start with an underscore are shared helpers. No finding is drawn from unknown time: each asks for the
coverage that the settings say.
"""

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Final

from gpuwaste.ledger.finding import Finding
from gpuwaste.ledger.findings import many_small_jobs
from gpuwaste.ledger.ledger import JobLedger
from gpuwaste.ledger.ledger_settings import LedgerSettings

CAUSE_ORDER: Final = (
    "one_gpu_of_many",
    "gpus_untouched",
    "gpus_opened_idle",
    "memory_resident",
    "idle_interactive",
    "idle_tail",
    "cpu_starved",
)
"""To which finding a wasted GPU-second of a run belongs: the first of these that has it.

All but the last are of GPUs that no other one has; cpu_starved is of the whole waste of its run and takes the rest.
"""
NOT_WASTE: Final = frozenset({"busy_hang", "few_sms"})
"""Findings of time that is not counted as waste."""
Find = Callable[[Sequence[JobLedger], LedgerSettings], Iterator[Finding]]


@cache
def finders() -> dict[str, Find]:
    """Return the `find` of each file by the file's name."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return {name: importlib.import_module(f"{__name__}.{name}").find for name in names}


@cache
def limits() -> dict[str, float]:
    """Return the findings' thresholds that query ledger_rows needs, as its parameters."""
    found: dict[str, float] = {}
    for name in finders():
        found |= getattr(importlib.import_module(f"{__name__}.{name}"), "LIMITS", {})
    return found


def cause_name(kind: str) -> str:
    """Return what readers call a kind of finding; a kind of another version has no name but its own."""
    if kind not in finders():
        return kind.replace("_", " ")
    name: str = importlib.import_module(f"{__name__}.{kind}").CAUSE
    return name


def causes(ledger: JobLedger, settings: LedgerSettings, kinds: Collection[str] | None = None) -> list[Finding]:
    """Return what the findings of one run alone, or those of some `kinds`, say of a run, the largest waste first."""
    asked = sorted(finders().keys() - {many_small_jobs.KIND}) if kinds is None else kinds
    found = [finding for kind in asked for finding in finders()[kind]([ledger], settings)]
    return sorted(found, key=lambda finding: (-finding.wasted_gpu_s, finding.kind))

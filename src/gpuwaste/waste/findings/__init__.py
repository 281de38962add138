"""The findings: each file here names one cause of waste and exposes `find(jobs, settings) -> Iterator[Finding]`.

A file is found by being here. Files that start with an underscore are shared helpers. No finding is drawn from unknown
time: each asks for the coverage that the settings say.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from gpuwaste.core.finding import Finding
from gpuwaste.core.run import RunKey
from gpuwaste.waste.ledger import JobLedger
from gpuwaste.waste.settings import LedgerSettings

Find = Callable[[Sequence[JobLedger], LedgerSettings], Iterator[Finding]]


@cache
def finders() -> dict[str, Find]:
    """Return the `find` of each file by the file's name."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return {name: importlib.import_module(f"{__name__}.{name}").find for name in names}


def all_findings(jobs: Sequence[JobLedger], settings: LedgerSettings) -> list[Finding]:
    """Return what every finding has to say of these runs, the largest waste first."""
    found = [finding for find in finders().values() for finding in find(jobs, settings)]
    return sorted(found, key=finding_order)


def finding_order(finding: Finding) -> tuple[float, str, tuple[RunKey, ...]]:
    """Return what findings are sorted by: the largest waste first."""
    return -finding.wasted_gpu_s, finding.kind, finding.runs

"""What the findings of this folder have in common."""

from typing import Any

from gpuwaste.core.units import say_percent
from gpuwaste.ledger.finding import Finding, Fix
from gpuwaste.ledger.right_size.rule import WINDOW
from gpuwaste.ledger.right_size.such_jobs import SuchJobs


def finding(kind: str, jobs: SuchJobs, title: str, evidence: dict[str, Any], fixes: tuple[Fix, ...]) -> Finding:
    """Return a finding of the completed runs that it is drawn from."""
    runs = tuple(run.key for run in jobs.completed[-WINDOW:])
    return Finding(kind, title, runs, evidence, fixes, wasted_gpu_s=0.0)


def at_most(chance: float) -> str:
    """Return the chance that the next run needs more, in words."""
    return f"chance that the next run needs more: at most {say_percent(chance)}"

"""What is predicted: each target with its label, its kind and its name for users."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.verdicts.hits import RunEnd, came_true
from gpuwaste.jobs.history.history_keys import COLUMNS
from gpuwaste.jobs.history.job_table import Floats, JobTable
from gpuwaste.jobs.history.outcome import Outcome, state_of

Kind = Literal["probability", "quantiles"]


@dataclass(frozen=True, slots=True)
class Target:
    """One target; `quantiles` is empty for a probability."""

    name: str
    kind: Kind
    text: str
    unit: str = ""
    quantiles: tuple[float, ...] = ()


TARGETS: Final = (
    Target("failure", "probability", "the job fails (FAILED, OUT_OF_MEMORY; cancelled jobs left out)"),
    Target("failure_or_cancel", "probability", "the job fails or is cancelled after its start"),
    Target("timeout", "probability", "the job reaches its time limit"),
    Target("walltime", "quantiles", "how long the job runs", "s", (0.5, 0.9, 0.95, 0.99)),
    Target("memory", "quantiles", "the largest memory of a step's task (MaxRSS)", "B", (0.5, 0.9, 0.95, 0.99)),
    Target("gpu_underused", "probability", "the job's GPUs stay below the under-use limit on average"),
    Target("gpus_needed", "quantiles", "how many of the GPUs will be used", "GPUs", (0.5, 0.9, 0.95)),
)
BY_NAME: Final = {target.name: target for target in TARGETS}
_KNOWN: Final = (None, False, True)
OF_THE_LEDGER: Final = frozenset({"gpu_underused", "gpus_needed"})
ASKED: Final = {"walltime": "time_limit_s", "memory": "mem_b", "gpus_needed": "gpus"}  # target -> field of the request


def labels(target: str, table: JobTable) -> Floats:
    """Return the label of each run for a target, NaN if unknown: 0 or 1, or an amount in the target's unit.

    No amount is above the requested one (`request_cap`). A run that goes on beyond its limit, or was ended by it, has
    the limit as label: it is censored there. GPUs are judged by the table's rule of under-use. Training, correction and
    evaluation all use this one label.

    Raises KeyError for a target that does not exist.
    """
    shown, most = _LABELS[target](table), request_cap(target, table)
    return np.where(shown > most, most, shown)


def request_cap(target: str, table: JobTable) -> Floats:
    """Return the requested amount of each row in the target's unit, NaN without a bound: no quantile is above it.

    An amount of 0 requests everything (`--time=0`, `--mem=0`) and is no bound.
    """
    field = ASKED.get(target)
    if field is None:
        return np.full(len(table), np.nan)
    asked: Floats = getattr(table, COLUMNS.get(field, field))
    return np.where(asked > 0, asked, np.nan)


def _event(target: str) -> Callable[[JobTable], Floats]:
    """Return the labelling function of a yes/no target: verdicts/hits.py, called once for each way a run can end."""
    ways = [
        came_true(target, RunEnd(state_of(outcome), outcome != Outcome.NEVER_STARTED, under=under, at_limit=at_limit))
        for outcome, at_limit, under in product(sorted(Outcome), _KNOWN, _KNOWN)
    ]
    label = np.array([np.nan if said is None else float(said) for said in ways])

    def labels_of(table: JobTable) -> Floats:
        limit = request_cap("walltime", table)
        at_limit = np.where((table.run_s > 0) & np.isfinite(limit), 1 + (table.run_s >= limit), 0)
        under = np.where(_judged(table), 1 + (table.used_ratio < table.under_use.below_ratio), 0)
        found: Floats = label[(table.outcome.astype(np.int64) * len(_KNOWN) + at_limit) * len(_KNOWN) + under]
        return found

    return labels_of


def _walltime(table: JobTable) -> Floats:
    """Return the run time in seconds."""
    ours = ~np.isin(table.outcome, (Outcome.SYSTEM, Outcome.NEVER_STARTED))
    return np.where(ours & (table.run_s > 0), table.run_s, np.nan)


def _memory(table: JobTable) -> Floats:
    return np.where(table.max_rss_b > 0, table.max_rss_b, np.nan)


def _gpus_needed(table: JobTable) -> Floats:
    return np.where(_judged(table), table.gpus_active, np.nan)


def _judged(table: JobTable) -> NDArray[np.bool_]:
    rule = table.under_use
    return (table.gpus > 0) & (table.gpu_coverage >= rule.min_coverage) & (table.run_s > rule.min_s)


_LABELS: Final = {
    "failure": _event("failure"),
    "failure_or_cancel": _event("failure_or_cancel"),
    "timeout": _event("timeout"),
    "walltime": _walltime,
    "memory": _memory,
    "gpu_underused": _event("gpu_underused"),
    "gpus_needed": _gpus_needed,
}

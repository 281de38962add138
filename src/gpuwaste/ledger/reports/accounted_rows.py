"""What accounting has of the use of a run's GPUs, for the job's document; checked against agents that have it, too."""

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Final

from gpuwaste.core.typed import convert
from gpuwaste.core.units import format_size, say_percent
from gpuwaste.ledger.ledger import ACCOUNTED, JobLedger
from gpuwaste.ledger.reports.job_types import AccountedRow, RunRow, SourceCheck
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database

_MOST: Final = 10_000
_NUMBER: Final = re.compile(r"[0-9]{1,4}")  # gpuwaste's own export names GPUs by UUID: no second source
_PERCENT: Final = 100.0


def accounted_rows(db: Database, jobs: Sequence[JobLedger]) -> dict[RunKey, list[AccountedRow]]:
    """Return the rows of the runs that were judged last on this connection, `jobs` in their order."""
    found: dict[RunKey, list[AccountedRow]] = defaultdict(list)
    keys = dict(enumerate((ledger.job.run_key for ledger in jobs), 1))
    for row in db.rows("accounted_of_picked", {"most": _MOST}):
        if key := keys.get(row["place"]):
            names = {name: row[name] or None for name in ("node", "gpu")}
            found[key].append(convert({**row, **names}, AccountedRow))
    return found


def source_check(ledger: JobLedger, rows: Sequence[AccountedRow], min_coverage: float) -> SourceCheck | None:
    """Return both means; None unless agents and jobstats each have all GPUs of a run that has ended."""
    own = ledger.devices
    told = [
        row.mean_pct
        for row in rows
        if row.source == ACCOUNTED and _NUMBER.fullmatch(row.gpu or "") and row.mean_pct is not None
    ]
    seen = [d.mean_pct for d in own if not d.use.accounted and d.coverage >= min_coverage and d.mean_pct is not None]
    if ledger.running or not own or len(told) != len(own) or len(seen) != len(own):
        return None
    agent, jobstats = fmean(seen), fmean(told)
    return SourceCheck(
        agent_mean_pct=round(agent, 2), jobstats_mean_pct=round(jobstats, 2), difference_pct=round(agent - jobstats, 2)
    )


def accounted_words(run: RunRow) -> list[str]:
    """Return sentences: which GPUs only accounting tells of, the difference of the sources, and Slurm's readings."""
    words = []
    if told := sum(device.map_source == ACCOUNTED for device in run.devices):
        words.append(
            f"The figures of {told} of {len(run.devices)} GPUs are jobstats' means in accounting: no agent reported "
            "them. Only a GPU at 0 % from start to end counts as idle, and as untouched if 1 % of its memory or less "
            "was in use."
        )
    if run.check is not None:
        agent, jobstats = (say_percent(p / _PERCENT) for p in (run.check.agent_mean_pct, run.check.jobstats_mean_pct))
        words.append(
            f"Mean use: {agent} by the agents, {jobstats} by jobstats "
            f"(difference {abs(run.check.difference_pct):.1f} percentage points)."
        )
    return words + [text for row in run.accounted if row.source == "slurm" and (text := _readings(row))]


def _readings(row: AccountedRow) -> str:
    """Return what Slurm's own readings of a run tell."""
    if row.peak_pct == 0 and row.gpu_mem_max_b == 0:
        return "Slurm read 0 % and no GPU memory in use. NVML errors look the same: this is not counted as idle."
    parts = [
        f"{row.peak_pct:,.0f} % (one or several GPUs of a task together)" if row.peak_pct else "",
        f"{format_size(row.gpu_mem_max_b)} of GPU memory in a task" if row.gpu_mem_max_b else "",
    ]
    told = " and ".join(filter(None, parts))
    return f"Slurm's largest readings: {told}." if told else ""

"""The findings of the stored balance: jobs that kept GPUs from jobs that waited and used less than they requested."""

from collections.abc import Collection
from typing import Any, Final

from gpuwaste.ledger.balance.findings import STRAND_FINDINGS
from gpuwaste.ledger.balance.findings._kept import kept_gpus
from gpuwaste.ledger.judged_run import named
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database

_OF_SELECTION: Final = ("from_s", "to_s", "user", "account", "clusters", "accounts", "reader")


def stranding_findings(
    db: Database, selection: Selection, runs: Collection[RunKey] | None = None
) -> list[dict[str, Any]]:
    """Return the findings in a selection's window and scope, or only those of some runs. Raises StoreError."""
    asked = selection.parameters(selection.end)
    which = {name: asked[name] for name in _OF_SELECTION}
    which["job_ids"] = None if runs is None else sorted({run.job_id for run in runs})
    found = []
    for row in db.rows("stranding_of", which):
        job = kept_gpus(row)
        if runs is not None and job.job.run_key not in runs:
            continue
        for module in STRAND_FINDINGS.values():
            if module.CLASS.value == row["class"]:
                printed = {(job.job.cluster, job.job.job_id): job.printed_id}
                found += named([finding.to_json() for finding in module.find(job)], printed)
    return found

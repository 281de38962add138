"""Queue time of one job against its user's fair share, in a static load: section 3.4 of Marciani et al.

Every user has used, before, what the load gives them to use; the workflow's user has used what gives the fair share
that is asked for. One row for each size and run time of the job that is followed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpuwaste.sim.generating import generated, generator_parameters
from gpuwaste.sim.parameters import read_named
from gpuwaste.sim.wrapped_load import BackgroundLoad, Floats, workflow_starts
from gpuwaste.sim.wrappers import WRAPPERS, Workflow

TITLE: Final = "queue time of one job by fair share, in a static load"
PARAMETERS: Final[Mapping[str, Any]] = {
    "generate": "lumi",
    "fair_share": None,
    "runs": [1800, 3600, 7200, 12600],
    "cpus": [96, 192, 384, 672, 1152],
}
MEASURES: Final = ("queue_s", "priority")


def rows(values: Mapping[str, Any], seed: int, folder: Path) -> list[dict[str, Any]]:
    """Play the load once for each job; see experiments. Raises UsageError."""
    del folder
    others = _others(values["generate"], seed)
    used = others.usage_for(float(values["fair_share"]), others.usage)
    found = []
    for run_s in values["runs"]:
        for cpus in values["cpus"]:
            wrapped = WRAPPERS["single"](Workflow(np.array([[run_s]], dtype=np.int64), cpus))
            start, priority = workflow_starts(others, wrapped, 0, used)
            found.append({"run_s": run_s, "cpus_each": cpus, "queue_s": int(start[0]), "priority": float(priority[0])})
    return found


def _others(words: str, seed: int) -> BackgroundLoad:
    chosen = read_named(words, generator_parameters(), "generate")
    load = generated(chosen.seeded(seed))
    order = np.argsort(load.submit, kind="stable")
    users, owner = np.unique(load.user[order], return_inverse=True)
    account = {int(user): int(load.account[np.flatnonzero(load.user == user)[0]]) for user in users}
    held = (load.procs * load.run_s)[order].astype(np.float64)
    used: Floats = np.bincount(owner, weights=held, minlength=len(users)).astype(np.float64)
    owners = tuple((f"a{account[int(user)]}", f"u{user}") for user in users)
    return BackgroundLoad(
        submit=load.submit[order],
        run_s=load.run_s[order],
        limit_s=load.limit_s[order],
        procs=load.procs[order],
        owner=owner.astype(np.int64),
        owners=owners,
        usage=used,
        processors=load.processors,
    )

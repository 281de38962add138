"""Queue time of one job against its user's fair share, in a static load: section 3.4 of Marciani et al.

Every user has used, before, what the load gives them to use; the workflow's user has used what gives the requested
fair share. One row for each size and run time of the job that is followed.

What the paper leaves open can be varied: whether jobs take whole nodes of `node_cpus`, and whether earlier usage
counts CPU seconds or seconds (`used_by`).
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.sim.generated_load import generated, generator_parameters
from gpuwaste.sim.parameters import read_named
from gpuwaste.sim.workflow_wrapping import WRAPPERS, BackgroundLoad, Floats, Workflow, workflow_starts

TITLE: Final = "queue time of one job by fair share, in a static load"
PARAMETERS: Final[Mapping[str, Any]] = {
    "generate": "lumi",
    "fair_share": None,
    "runs": [1800, 3600, 7200, 12600],
    "cpus": [96, 192, 384, 672, 1152],
    "node_cpus": 1,
    "used_by": "cpu_seconds",
}
MEASURES: Final = ("queue_s", "priority")
_USED_BY: Final = ("cpu_seconds", "seconds")


def rows(values: Mapping[str, Any], seed: int, folder: Path) -> list[dict[str, Any]]:
    """Play the load once for each job; see experiments. Raises UsageError."""
    del folder
    if values["used_by"] not in _USED_BY:
        raise UsageError(f"used_by={values['used_by']}: expected one of {', '.join(_USED_BY)}")
    node = values["node_cpus"]
    others = _on_whole_nodes(_others(values["generate"], seed, values["used_by"]), node)
    used = others.usage_for(float(values["fair_share"]), others.usage)
    found = []
    for run_s in values["runs"]:
        for cpus in values["cpus"]:
            held = -(-cpus // node) * node
            wrapped = WRAPPERS["single"](Workflow(np.array([[run_s]], dtype=np.int64), held))
            start, priority = workflow_starts(others, wrapped, 0, used)
            found.append({"run_s": run_s, "cpus_each": cpus, "queue_s": int(start[0]), "priority": float(priority[0])})
    return found


def _on_whole_nodes(others: BackgroundLoad, node_cpus: int) -> BackgroundLoad:
    """Return the load in whole nodes. Raises UsageError for nodes that are larger than the machine."""
    total = others.processors // node_cpus * node_cpus if node_cpus > 0 else 0
    if not total:
        raise UsageError(f"node_cpus={node_cpus}: expected 1 to {others.processors}, the CPUs of the machine")
    whole = -(-others.procs // node_cpus) * node_cpus
    return replace(others, procs=np.minimum(whole, total), processors=total)


def _others(words: str, seed: int, used_by: str) -> BackgroundLoad:
    chosen = read_named(words, generator_parameters(), "generate")
    load = generated(chosen.seeded(seed))
    order = np.argsort(load.submit, kind="stable")
    users, owner = np.unique(load.user[order], return_inverse=True)
    account = {int(user): int(load.account[np.flatnonzero(load.user == user)[0]]) for user in users}
    each = load.procs * load.run_s if used_by == "cpu_seconds" else load.run_s
    held = each[order].astype(np.float64)
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

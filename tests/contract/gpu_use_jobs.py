"""A cluster whose accounting has gres/gpuutil and gres/gpumem: jobs with known loads, and what is read of each.

python -m tests.contract.gpu_use_jobs DIRECTORY PLUGIN_DIR SIM_DIR NATIVE

It runs where the simulated GPUs have their device files (gpuwaste.testing.sim_devices). Prints one JSON document: by
load the uses that our client reads of its run, and TRESUsageInAve of its step as sacct prints it.
"""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.system.autodetect_jobs import NODE, detect

from gpuwaste.slurm.accounting.job_record import AccountedRun
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.simnvml import SimNode, library_env

_GATHER_S: Final = 1
_WAIT_S: Final = 60
# --phase SECONDS:UTIL:MEM_MIB
_LOADS: Final[Mapping[str, tuple[str, str]]] = {
    "falls": ("gpu:1", "--phase 4:60:3000 --phase 8:20:1000"),
    "two": ("gpu:2", "--phase 8:45:2000"),
    "idle": ("gpu:1", "--phase 8:0:500"),
    "none": ("gpu:1", "--gpus none --for 8"),
}


def accounted(cluster: LoopbackCluster, native: Path) -> dict[str, dict[str, Any]]:
    """Run the loads at the same time and return what accounting has of each."""
    jobs = {}
    for name, (gres, words) in _LOADS.items():
        script = f"srun {native}/gpuwaste-load {words}"
        jobs[cluster.sbatch(script, "alice", w=NODE, gres=gres, output="/dev/null", n=1)] = name
    for job in jobs:
        (row,) = cluster.wait_accounted(job, _WAIT_S)
        if row["State"] != "COMPLETED":
            raise RuntimeError(str(row))
    now = int(time.time())
    rows = CommandClient(str(cluster.layout.slurm_conf)).accounting(now - 3600, now + 60)
    return {
        jobs[row.job_id]: {"uses": [dataclasses.asdict(use) for use in row.uses], "average": _average(cluster, row)}
        for row in rows
        if isinstance(row, AccountedRun) and row.job_id in jobs
    }


def _average(cluster: LoopbackCluster, run: AccountedRun) -> str:
    command = ["sacct", "-n", "-P", "-j", f"{run.job_id}.0", "-o", "TRESUsageInAve"]
    return cluster.run(command).stdout.strip()


def main() -> None:
    """Print what was read."""
    directory, plugin, simulated, native = sys.argv[1:5]
    node = SimNode(Path(simulated))
    os.environ |= library_env(Path(native))
    tres = "AccountingStorageTRES=gres/gpu,gres/gpuutil,gres/gpumem\n"
    variant = Variant(plugin_dir=plugin, prolog=(), epilog=(), job_acct_gather_s=_GATHER_S, slurm_conf=tres)
    with LoopbackCluster(directory, variant, remove=True) as cluster:
        detect(cluster, node, Path(native), 5)
        found = accounted(cluster, Path(native))
    print(json.dumps(found))  # noqa: T201 a command's own output


if __name__ == "__main__":
    main()

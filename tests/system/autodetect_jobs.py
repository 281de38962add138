"""A cluster whose node has AutoDetect=nvml, and a job on each of its positions: what Slurm tells of each, as JSON.

python -m tests.system.autodetect_jobs DIRECTORY PLUGIN_DIR SIM_DIR NATIVE GPUS

It runs where the simulated GPUs have their device files (gpuwaste.testing.sim_devices).
"""

import dataclasses
import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.sim_devices import own_slurmd
from gpuwaste.testing.simnvml import SimNode, library_env

NODE: Final = "gpu1"
_SCRIPT: Final = """\
echo "$CUDA_VISIBLE_DEVICES" > {output}.new && mv {output}.new {output}
until [ -e {flag} ]; do sleep 0.2; done
"""


def detect(cluster: LoopbackCluster, node: SimNode, native: Path, gpus: int) -> None:
    """Let the node find its GPUs itself, and start it and slurmctld anew."""
    conf = cluster.layout.slurm_conf
    own = rf"(?m)^(NodeName={NODE} .*)Gres=\S+"
    conf.write_text(re.sub(own, rf"\1Gres=gpu:{gpus}", conf.read_text(encoding="utf-8")), encoding="utf-8")
    gres = conf.with_name("gres.conf")
    line = f"NodeName={NODE} AutoDetect=nvml"
    gres.write_text(re.sub(rf"(?m)^NodeName={NODE} .*", line, gres.read_text(encoding="utf-8")), encoding="utf-8")
    cluster.set_node_env(NODE, **node.env, **library_env(native))
    cluster.stop_slurmd(NODE)
    cluster.restart_slurmctld()
    cluster.restart_slurmd(NODE)


def jobs_on(cluster: LoopbackCluster, gpus: int) -> list[dict[str, Any]]:
    """Run a job on each GPU at the same time; return each one's position and what it is told to use."""
    home = cluster.directory / "home" / "alice"
    flag = home / "go"
    outputs = {}
    for number in range(gpus):
        output = home / f"told.{number}"
        script = _SCRIPT.format(output=output, flag=flag)
        outputs[cluster.sbatch(script, "alice", w=NODE, gres="gpu:1", output="/dev/null")] = output
    wait_until(
        lambda: all(map(Path.exists, outputs.values())), 60, "all jobs to run", lambda: str(cluster.node_states())
    )
    found = []
    for job, output in outputs.items():
        (record,) = cluster.show_job(job)
        position = re.search(r"IDX:(\d+)\)", record["GRES"])
        assert position
        found.append({"position": int(position[1]), "told": output.read_text(encoding="utf-8").strip()})
    flag.touch()
    return found


def main() -> None:
    """Print the list and the jobs."""
    directory, plugin, simulated, native, gpus = sys.argv[1:6]
    node = SimNode(Path(simulated))
    os.environ |= library_env(Path(native))
    with LoopbackCluster(directory, Variant(plugin_dir=plugin, prolog=(), epilog=()), remove=True) as cluster:
        detect(cluster, node, Path(native), int(gpus))
        commands = own_slurmd(node, cluster.directory / "bin")
        devices = CommandClient(str(cluster.layout.slurm_conf), path=str(commands)).device_list(NODE)
        document = {"list": [dataclasses.asdict(device) for device in devices], "jobs": jobs_on(cluster, int(gpus))}
    print(json.dumps(document))  # noqa: T201 a command's own output


if __name__ == "__main__":
    main()

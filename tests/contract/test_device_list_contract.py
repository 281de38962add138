"""The list of GPUs as Slurm's own gpu/nvml plugin makes it, with AutoDetect=nvml, MIG instances and shards.

The plugin is Debian's, the NVML below it is simulated.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tools import slurm_gpu

from gpuwaste.slurm.formats.list_conf import release_of
from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.patience import patient
from gpuwaste.testing.sim_devices import own_slurmd, with_devices
from gpuwaste.testing.simnvml import MigInstance, SimGpu, SimNode, build_native, library_env, make_gpus

pytestmark = pytest.mark.cluster  # Slurm, root, and munge, whose socket slurmd wants since 23.11
_MINORS = (3, 1, 0, 2)
"""In PCI order, which is NVML's."""
_SHARDS = 4
_SPLITS = (22, 5)
"""The release that makes several positions of a MIG instance where there are shards."""
_LIST = """\
import dataclasses, json, sys
from gpuwaste.slurm.clients.command_client import CommandClient
client = CommandClient(sys.argv[1], path=sys.argv[2])
print(json.dumps([dataclasses.asdict(device) for device in client.device_list("gpu1")]))
"""


@dataclass
class Bench:
    """A node's GPUs and the files of a site, of which the list is read."""

    folder: Path
    plugin: Path
    native: Path
    munge_socket: Path
    release: tuple[int, int]

    def read(
        self, gpus: Sequence[SimGpu], gres: str, node_gres: str, types: str = "gpu", more: str = ""
    ) -> list[Mapping[str, Any]]:
        """Return the positions that our client reads; `more` are lines of slurm.conf."""
        node = SimNode.create(self.folder / "node", gpus)
        conf = self.folder / "slurm.conf"
        conf.write_text(
            f"ClusterName=gw\nSlurmctldHost=nowhere\nGresTypes={types}\nAuthInfo=socket={self.munge_socket}\n"
            f"PluginDir={self.plugin}:/usr/lib/x86_64-linux-gnu/slurm-wlm\n"
            f"SlurmdSpoolDir={self.folder}/spool\n{more}NodeName=gpu1 Gres={node_gres} CPUs=2\n"
        )
        conf.with_name("gres.conf").write_text(gres)
        argv = with_devices(node, [sys.executable, "-c", _LIST, str(conf), str(own_slurmd(node, self.folder / "bin"))])
        env = {"PATH": cluster_host.search_path(), **library_env(self.native)}
        env["PYTHONPATH"] = ":".join(path for path in sys.path if path)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=patient(60), check=False, env=env)
        assert done.returncode == 0, done.stderr
        found: list[Mapping[str, Any]] = json.loads(done.stdout)
        assert [device["position"] for device in found] == list(range(len(found)))
        return found


@pytest.fixture
def bench(cluster: LoopbackCluster, tmp_path: Path) -> Iterator[Bench]:
    """Return a bench with the plugin of this host's Slurm."""
    version = slurm_gpu.slurm_version()
    folder = slurm_gpu.folder_of(version)
    if not slurm_gpu.is_there(folder):
        pytest.skip(f"no plugin gpu/nvml of Slurm {version} in {folder}: make slurm-gpu")
    yield Bench(tmp_path, folder, build_native(), cluster.munge_socket, release_of(version) or (0, 0))
    assert not (tmp_path / "spool").exists()


def _mig(gpu: SimGpu) -> SimGpu:
    """Return a GPU that is cut into two instances."""
    return replace(gpu, mig_enabled=True, mig=tuple(MigInstance(gi, profile="3g.20gb") for gi in (1, 2)))


def _caps(device: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(device["cap_minors"])


def test_found_gpus_are_in_the_order_of_nvml(bench: Bench) -> None:
    """With AutoDetect=nvml alone a position is an NVML index, and its minor another number."""
    gpus = make_gpus(_MINORS)
    found = bench.read(gpus, "AutoDetect=nvml\n", "gpu:4")
    assert [device["minor"] for device in found] == list(_MINORS)
    told = [device["unique_id"] for device in found]
    assert told in ([gpu.uuid for gpu in gpus], [""] * len(gpus))


def test_files_in_gres_conf_are_in_their_own_order(bench: Bench) -> None:
    """Without AutoDetect the order is the written one; NVML is not asked."""
    found = bench.read(make_gpus(_MINORS), "NodeName=gpu1 Name=gpu File=/dev/nvidia[2,0,1,3]\n", "gpu:4")
    assert [device["minor"] for device in found] == [2, 0, 1, 3]


def test_files_that_are_found_too_are_in_the_order_that_slurmd_makes(bench: Bench) -> None:
    """With both, slurmd sorts by the links that it found: NVML's order again, whatever the file says."""
    found = bench.read(make_gpus(_MINORS), "AutoDetect=nvml\nNodeName=gpu1 Name=gpu File=/dev/nvidia[0-3]\n", "gpu:4")
    assert [device["minor"] for device in found] == list(_MINORS)


def test_a_site_whose_daemons_sign_by_themselves_has_a_list_too(bench: Bench) -> None:
    """With auth/slurm no key of the site is read, and no socket of the running slurmd is replaced."""
    sack = Path("/run/slurm/sack.socket")
    before = sack.stat().st_ino if sack.exists() else None
    found = bench.read(make_gpus(_MINORS), "AutoDetect=nvml\n", "gpu:4", more="AuthType=auth/slurm\n")
    assert [device["minor"] for device in found] == list(_MINORS)
    assert (sack.stat().st_ino if sack.exists() else None) == before


def test_each_instance_is_a_position_with_its_capabilities(bench: Bench) -> None:
    """A MIG instance has its GPU's minor and the minors of its two capability files; whole GPUs have none."""
    gpus = make_gpus(_MINORS)
    gpus[1] = _mig(gpus[1])
    found = bench.read(gpus, "AutoDetect=nvml\n", "gpu:5")
    assert sorted((device["minor"], _caps(device)) for device in found) == [
        (0, ()), (1, (147, 148)), (1, (156, 157)), (2, ()), (3, ()),
    ]  # fmt: skip
    assert [device["minor"] for device in found if not _caps(device)] == [3, 0, 2]


def test_shards_are_no_positions(bench: Bench) -> None:
    """Each GPU knows into how many parts it goes, and the parts count as no position."""
    gres = f"AutoDetect=nvml\nName=shard Count={_SHARDS * 4}\n"
    found = bench.read(make_gpus(_MINORS), gres, f"gpu:4,shard:{_SHARDS * 4}", "gpu,shard")
    assert [device["minor"] for device in found] == list(_MINORS)
    assert [device["shards"] for device in found] == [_SHARDS] * 4


def test_shards_of_instances_are_no_positions_either(bench: Bench) -> None:
    """Instances go into shards as GPUs do; 22.05 makes a position of each file of one, and no whole GPU of any."""
    gpus = make_gpus(_MINORS)
    gpus[1] = _mig(gpus[1])
    found = bench.read(gpus, "AutoDetect=nvml\nName=shard Count=20\n", "gpu:5,shard:20", "gpu,shard")
    rows = [(device["minor"], _caps(device)) for device in found]
    whole = [minor for minor, caps in rows if not caps and minor != 1]
    assert whole == [3, 0, 2]
    assert all(device["shards"] for device in found)
    of_instances = [row for row in rows if row[0] not in whole]
    if bench.release == _SPLITS:
        assert of_instances == [(1, ()), (None, (147,)), (None, (148,)), (1, ()), (None, (156,)), (None, (157,))]
    else:
        assert of_instances == [(1, (147, 148)), (1, (156, 157))]

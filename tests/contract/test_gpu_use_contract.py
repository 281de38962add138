"""What Slurm's own accounting has of GPUs: gres/gpuutil and gres/gpumem of a live cluster, NVML simulated."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import _private_directory
from tools import slurm_gpu

from gpuwaste.testing import cluster_host
from gpuwaste.testing.patience import patient
from gpuwaste.testing.sim_build import build_native
from gpuwaste.testing.sim_devices import with_devices
from gpuwaste.testing.simnvml import SimNode, make_gpus

pytestmark = pytest.mark.cluster
_ROOT = Path(__file__).parents[2]
_READS = b"gpu_p_usage_read"


@pytest.fixture(scope="module")
def accounted() -> Mapping[str, Any]:
    """Return what our client reads of each load's run."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    version = slurm_gpu.slurm_version()
    plugin = slurm_gpu.folder_of(version)
    if not slurm_gpu.is_there(plugin):
        pytest.skip(f"no plugin gpu/nvml of Slurm {version} in {plugin}: make slurm-gpu")
    if _READS not in (plugin / "gpu_nvml.so").read_bytes():
        pytest.skip(f"the plugin gpu/nvml of Slurm {version} does not read the use of GPUs")
    native = build_native()
    directory = _private_directory()
    node = SimNode.create(directory / "node", make_gpus([3, 1, 0, 2, 4]))
    try:
        words = [str(directory / "c"), str(plugin), str(node.directory), str(native)]
        argv = with_devices(node, [sys.executable, "-m", "tests.contract.gpu_use_jobs", *words])
        env = {"PATH": cluster_host.search_path(), "PYTHONPATH": ":".join(path for path in sys.path if path)}
        done = subprocess.run(
            argv, cwd=_ROOT, env=env, capture_output=True, text=True, timeout=patient(200), check=False
        )
        assert done.returncode == 0, done.stderr
        found: Mapping[str, Any] = json.loads(done.stdout)
        return found
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_accounting_has_the_largest_reading_of_a_task(accounted: Mapping[str, Any]) -> None:
    """The peak of a load that falls, memory of both GPUs together, 0 of an idle process and of none."""
    (falls,), (two,), (idle,), (none,) = (accounted[name]["uses"] for name in ("falls", "two", "idle", "none"))
    assert (falls["peak_pct"], falls["gpu_mem_max_b"], falls["mean_pct"]) == (60.0, 3000 << 20, None)
    assert (idle["peak_pct"], idle["gpu_mem_max_b"]) == (0.0, 500 << 20)
    assert (none["peak_pct"], none["gpu_mem_max_b"]) == (0.0, 0)
    assert two["gpu_mem_max_b"] == 4000 << 20
    # Slurm adds a GPU only where its sample is newer than that of the GPU before, which here it never is.
    assert two["peak_pct"] in {45.0, 90.0}


def test_no_average_of_accounting_is_a_mean(accounted: Mapping[str, Any]) -> None:
    """4 s at 60 % and 8 s at 20 % are a mean of 33 %: TRESUsageInAve has one of the two readings."""
    (util,) = (part for part in accounted["falls"]["average"].split(",") if part.startswith("gres/gpuutil="))
    assert util in {"gres/gpuutil=60", "gres/gpuutil=20"}

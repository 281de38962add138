"""Positions of GPUs that slurmd finds itself: the list's order is the order in which Slurm gives them to jobs."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import _private_directory
from tools import slurm_gpu

from gpuwaste.testing import cluster_host
from gpuwaste.testing.patience import patient
from gpuwaste.testing.sim_devices import with_devices
from gpuwaste.testing.sim_gpus import mig_minors_lines
from gpuwaste.testing.simnvml import MigInstance, SimGpu, SimNode, make_gpus

pytestmark = pytest.mark.cluster
_ROOT = Path(__file__).parents[2]


def test_a_job_s_position_is_the_row_of_the_instance_that_it_is_told(native: Path, tmp_path: Path) -> None:
    """A MIG instance that Slurm names to a job in CUDA_VISIBLE_DEVICES is the one at the job's IDX in our list."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    version = slurm_gpu.slurm_version()
    plugin = slurm_gpu.folder_of(version)
    if not slurm_gpu.is_there(plugin):
        pytest.skip(f"no plugin gpu/nvml of Slurm {version} in {plugin}: make slurm-gpu")
    gpus = make_gpus([3, 1, 0, 2])
    gpus[1] = replace(gpus[1], mig_enabled=True, mig=tuple(MigInstance(gi, profile="3g.20gb") for gi in (1, 2)))
    node = SimNode.create(tmp_path / "node", gpus)
    directory = _private_directory()
    try:
        words = [str(directory / "c"), str(plugin), str(node.directory), str(native), "5"]
        argv = with_devices(node, [sys.executable, "-m", "tests.system.autodetect_jobs", *words])
        env = {"PATH": cluster_host.search_path(), "PYTHONPATH": ":".join(path for path in sys.path if path)}
        done = subprocess.run(
            argv, cwd=_ROOT, env=env, capture_output=True, text=True, timeout=patient(200), check=False
        )
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    jobs = {job["position"]: job["told"] for job in document["jobs"]}
    assert sorted(jobs) == list(range(5))
    rows = {device["position"]: device["cap_minors"] for device in document["list"]}
    named = {position: told for position, told in jobs.items() if told.startswith("MIG-")}
    assert {told: rows[position] for position, told in named.items()} == _capabilities(gpus[1])
    assert [rows[position] for position in jobs if position not in named] == [[], [], []]


def _capabilities(gpu: SimGpu) -> dict[str, list[int]]:
    """Return the minors of each instance's two capability files, as mig-minors has them."""
    minors = dict(line.rsplit(" ", 1) for line in mig_minors_lines([gpu]))
    return {
        mig.uuid: [int(minors[f"gpu{gpu.minor}/gi{mig.gi}/{of}access"]) for of in ("", f"ci{mig.ci}/")]
        for mig in gpu.mig
    }

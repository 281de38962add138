"""`gpuwaste simulate sweep --as-job` on a real Slurm: a job array, its results, and a sweep that is taken up again."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

STUDY = 'seeds = 3\n[fixed]\nschedulers = ["fcfs"]\n[grid]\ngenerate = ["lublin:jobs=30", "lublin:jobs=0"]\n'
GOOD = STUDY.replace(', "lublin:jobs=0"', "")


def command(folder: Path, text: str) -> list[str]:
    """Write a study and return the command that runs it as an array of two tasks."""
    study = folder / "study.toml"
    study.write_text(text)
    words = ["simulate", "sweep", str(study), "-o", str(folder / "results"), "--as-job", "--partition", "gpu"]
    return [sys.executable, "-m", "gpuwaste.cli", *words, "--tasks", "2", "--time", "5", "--json"]


def arrays(cluster: LoopbackCluster) -> set[str]:
    """Return the arrays of sweeps that slurmctld knows, ended ones included: id and submission of each."""
    done = cluster.run(["squeue", "-h", "-t", "all", "-n", "gpuwaste-sweep", "-o", "%F %V"])
    return set(done.stdout.splitlines())


def test_a_sweep_runs_as_a_job_array(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """Good cases have their rows and bad ones their errors, and all of them were two tasks of one array."""
    cluster.reset()
    before = arrays(cluster)
    done = cluster.run(command(tmp_path, STUDY), env={"NUMBA_DISABLE_JIT": "1"}, timeout_s=240, check=False)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert (told["cases"], told["failed"], told["rows"]) == (6, 3, 3)
    assert len(arrays(cluster) - before) == 1


def test_an_interrupted_sweep_waits_for_its_array(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """After Ctrl-C the tasks go on in Slurm; the same command waits for them and submits nothing again."""
    cluster.reset()
    before = arrays(cluster)
    words = command(tmp_path, GOOD)
    env = {**cluster.env(), "NUMBA_DISABLE_JIT": "1", "HOME": str(tmp_path)}
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_until((tmp_path / "results" / "submitted.json").exists, 60, "the array to be submitted")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=patient(60))
    assert process.returncode in {0, 130}, error
    done = cluster.run(words, env={"NUMBA_DISABLE_JIT": "1"}, timeout_s=240)
    assert json.loads(done.stdout)["rows"] == 3
    assert len(arrays(cluster) - before) == 1

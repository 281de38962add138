"""Training as a job of the real Slurm: sbatch takes it, a node trains, the registry has the model."""

import os
import pwd
import re
import shutil
from pathlib import Path

import pytest
from tests.integration.cli.test_train import swf

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.runtime import EXTRAS, shared_runtime

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]  # a cluster, and a job that trains
USER = "gpuwaste"


def test_a_job_trains_and_the_model_is_in_the_registry(cluster: LoopbackCluster) -> None:
    """The command ends when Slurm has the job; the job's log has what the command would have printed."""
    place = cluster.directory / "training"
    shutil.rmtree(place, ignore_errors=True)
    (place / "models").mkdir(parents=True)
    config = place / "gpuwaste.toml"
    config.write_text(f'[common]\ncluster = "gw"\nmodels_dir = "{place}/models"\n')
    log = swf(place / "log.swf")
    owner = pwd.getpwnam(USER)
    for path in (place, place / "models", log, config):
        os.chown(path, owner.pw_uid, owner.pw_gid)
    words = ["--swf", str(log), "--targets", "failure", "--trials", "0", "--threads", "1", "--challenge"]
    runtime = shared_runtime(place / "runtime", EXTRAS | {"train"})
    command = runtime.command(
        "train", *words, "--as-job", "--partition", "cpu", "--time", "10", "--config", str(config)
    )
    done = cluster.run(command, user=USER, env=runtime.env, timeout_s=120)
    found = re.fullmatch(r"submitted as job (\d+); log: (\S+)\n", done.stdout)
    assert found is not None, done.stdout
    written = Path(found[2])
    try:
        cluster.wait_job(int(found[1]), "COMPLETED", timeout_s=400)
    finally:
        said = written.read_text(encoding="utf-8") if written.exists() else "no log"
    assert "is the model in use now" in said, said
    assert (place / "models" / "champion").is_symlink()
    shutil.rmtree(place)

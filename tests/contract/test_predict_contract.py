"""A job that Slurm knows, as gpuwaste predict asks for it: by the commands and through slurmrestd alike."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.advice.predict.bundles import manifest_of, probability_graph

from gpuwaste.advice.predict.bundle import our_features
from gpuwaste.advice.predict.manifest import TargetModel
from gpuwaste.cli.main import main
from gpuwaste.models.bundle_export import write_files
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.slurm.submit.sbatch_components import read_argv
from gpuwaste.testing.cluster import LoopbackCluster

pytestmark = pytest.mark.cluster
SCRIPT = (
    "#!/bin/bash\n#SBATCH -J one -n2 -t 30 --mem-per-cpu=100 --gres=gpu:1\n#SBATCH hetjob\n"
    "#SBATCH -J two -c3 -t 20 -p cpu --mem=1G\nsleep 60\n"
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Write a bundle of one target."""
    features = our_features()
    graph = probability_graph("failure", features.names.index("gpus"), features)
    manifest = replace(manifest_of(features=features), targets=(TargetModel("failure", "failure.onnx"),))
    write_files(tmp_path / "bundle", manifest, {"failure.onnx": graph}, features)
    return tmp_path / "bundle"


def _asked(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["predict", "--json", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    return [prediction["request"] for prediction in document["predictions"]]


@pytest.mark.parametrize("way", ["commands", "slurmrestd"])
def test_a_submitted_job_is_the_request_that_its_script_was(
    way: str, cluster: LoopbackCluster, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both components of a het job, one of them alone, and an array: what the script says is what Slurm tells."""
    conf = f'[common]\nslurm_conf = "{cluster.env()["SLURM_CONF"]}"\n'
    if way == "slurmrestd":
        (tmp_path / "jwt").write_text(cluster.jwt_token("root"))
        (tmp_path / "jwt").chmod(0o600)
        conf += f'slurmrestd_url = "{cluster.slurmrestd_url}"\nslurmrestd_token_file = "{tmp_path / "jwt"}"\n'
    (tmp_path / "gpuwaste.toml").write_text(conf)
    here = ["--model", str(bundle), "--config", str(tmp_path / "gpuwaste.toml")]
    job = cluster.sbatch(SCRIPT, H=True)
    array = cluster.sbatch("sleep 60", H=True, array="1-3", n=2, t=10, mem="200M", p="cpu")
    wanted = read_submission(SCRIPT, read_argv([]), user="alice").requests
    names = ("user", "name", "time_limit_s", "nodes", "cpus", "mem_b", "gpus", "is_array")
    both = _asked(["--jobs", str(job), *here], capsys)
    assert [[got[n] for n in names] for got in both] == [[getattr(r, n) for n in names] for r in wanted]
    assert _asked(["--jobs", f"{job}+1", *here], capsys)[0]["name"] == "two"
    (tasks,) = _asked(["--jobs", f"{array}_2", *here], capsys)
    assert (tasks["is_array"], tasks["cpus"], tasks["time_limit_s"], tasks["mem_b"]) == (True, 2, 600, 200 << 20)
    assert main(["predict", "--jobs", "99999999", *here]) == 3
    for number in (job, array):
        cluster.run(["scancel", str(number)])


def test_a_script_gets_the_partition_s_defaults(
    cluster: LoopbackCluster, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No partition and no limit: those that Slurm would give, as scontrol tells them."""
    (tmp_path / "gpuwaste.toml").write_text(f'[common]\nslurm_conf = "{cluster.env()["SLURM_CONF"]}"\n')
    (tmp_path / "job.sh").write_text("#!/bin/sh\nsleep 1\n")
    (request,) = _asked(
        [str(tmp_path / "job.sh"), "--model", str(bundle), "--config", str(tmp_path / "gpuwaste.toml")], capsys
    )
    assert (request["partition"], request["time_limit_s"]) == ("gpu", 600)

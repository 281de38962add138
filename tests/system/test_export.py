"""The commands of `gpuwaste export sacctmgr`, run against a real slurmdbd."""

import subprocess

import pytest
from msgspec.structs import replace
from tests.unit.show.documents import one_job, read

from gpuwaste.ledger.exports import jobstats, sacctmgr
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient

pytestmark = [pytest.mark.core, pytest.mark.cluster]


def kept(cluster: LoopbackCluster, job: str) -> list[str]:
    """Return AdminComment of each line that sacct has for a job, as jobstats asks for it."""
    words = ["sacct", "-n", "-X", "-P", "-j", job, "-o", "admincomment"]
    return cluster.run(words, user="root").stdout.split("\n")[:-1]


def test_the_text_is_in_accounting_and_on_one_task_alone(cluster: LoopbackCluster) -> None:
    """The printed id names one task of an array, whose first one has the array's raw id; an old Slurm is refused."""
    cluster.reset()
    job = cluster.sbatch("true", output="/dev/null", array="0-1")
    ended = ["sacct", "-n", "-X", "-P", "-j", str(job), "-o", "state"]
    wait_until(
        lambda: cluster.run(ended, user="root").stdout.split() == ["COMPLETED"] * 2, 60, "both tasks in accounting"
    )
    name = cluster.run(["scontrol", "show", "config"]).stdout.split("ClusterName")[1].split("=")[1].split()[0]
    document = read(one_job("7"))
    task = replace(document.runs[0], cluster=name, printed_id=f"{job}_0")
    (line,) = sacctmgr.lines([task], replace(document, runs=[task]))
    release = cluster.run(["sacctmgr", "-V"]).stdout.split()[-1]
    lowered = release < "23.02"
    done = subprocess.run(["sh", "-c", sacctmgr.HEADER + line], env=cluster.env(), check=False, timeout=patient(60))
    assert (done.returncode != 0) == lowered
    if lowered:
        assert kept(cluster, f"{job}_0") == [""]
        subprocess.run(["sh", "-c", line], env=cluster.env(), check=True, timeout=patient(60))
    text = jobstats.admin_comment(document.runs[0], document.thresholds.min_coverage)
    assert kept(cluster, f"{job}_0") == [text.lower() if lowered else text]
    assert kept(cluster, f"{job}_1") == [""]

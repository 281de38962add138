"""Billing weights against a real slurmctld: what a plan and a model would bill is what a job is billed."""

import re

import pytest
from tests.conftest import ClusterFactory

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.tres_amounts import billing, parse_weights
from gpuwaste.slurm.site.site_fields import parse_partitions

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
MIB = 2**20
HELD = {"cpu": 2, "mem": 512 * MIB, "node": 1, "gres/gpu": 2, "gres/gpu:a100": 2}
WEIGHTS = (
    "CPU=1000.0,Mem=20.25G,GRES/gpu=16.0",
    "GRES/gpu:A100=8",
    "gres/gpu=8,gres/gpu:a100=100",
    "CPU=4096K,GRES/gpu=9K",
    "Mem=3",
    "Mem=3K",
    "Mem=3M",
    "Mem=300GB",
    "cpu=2e3",
    "CPU=0.5",
)
REFUSED = ("CPU=x", "CPU", "Mem=1Q", "CPU=1,Mem=")


def test_weights_bill_what_slurm_bills(make_cluster: ClusterFactory) -> None:
    """Units, types in any case and weights by type: the billing TRES of each job is that of our reader."""
    cluster = make_cluster()
    for text in WEIGHTS:
        cluster.run(["scontrol", "update", "PartitionName=gpu", f"TRESBillingWeights={text}"])
        found = {one.name: one for one in parse_partitions(cluster.run(["scontrol", "show", "partition"]).stdout)}
        job = cluster.sbatch("sleep 600", "alice", n="2", mem="512M", gres="gpu:2", w="gpu1", time="5")
        cluster.wait_job(job, "RUNNING")
        billed = re.search(r"billing=(\d+)", cluster.run(["scontrol", "show", "job", str(job)]).stdout)
        cluster.cancel_jobs()
        assert found["gpu"].billing_weights == parse_weights(text), text
        assert billed is not None
        assert int(billed[1]) == int(billing(parse_weights(text), HELD)), text


@pytest.mark.parametrize("text", REFUSED)
def test_what_slurm_refuses_is_refused(make_cluster: ClusterFactory, text: str) -> None:
    """A list that slurmctld does not take has no weights for us."""
    cluster = make_cluster()
    done = cluster.run(["scontrol", "update", "PartitionName=gpu", f"TRESBillingWeights={text}"], check=False)
    assert done.returncode != 0
    with pytest.raises(ParseError):
        parse_weights(text)

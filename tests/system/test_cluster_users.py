"""Users who come and go with a test."""

import pwd

import pytest

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_users import passing_user

pytestmark = pytest.mark.cluster


def test_a_passing_user_submits_and_is_forgotten(cluster: LoopbackCluster) -> None:
    """His job runs under his name and account; afterwards neither the host nor accounting knows him."""
    cluster.reset()
    with passing_user(cluster, "proj2") as name:
        job = cluster.sbatch("id -un", name)
        cluster.wait_job(job, "COMPLETED")
        assert cluster.job_output(job).strip() == name
        (row,) = cluster.wait_accounted(job)
        assert (row["User"], row["Account"]) == (name, "proj2")
    with pytest.raises(KeyError):
        pwd.getpwnam(name)
    assert name not in cluster.run(["sacctmgr", "-nP", "show", "user"]).stdout
    assert not (cluster.directory / "home" / name).exists()

"""The loopback cluster: what starts, what jobs see, and that nothing stays behind."""

import pytest

from gpuwaste.testing.cluster import LoopbackCluster

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(("node", "options"), [("gpu1", {"gres": "gpu:1"}), ("gpu2", {}), ("cpu1", {"p": "cpu"})])
def test_a_job_runs_on_each_node(cluster: LoopbackCluster, node: str, options: dict[str, str]) -> None:
    """A batch job completes on each node and accounting has it there."""
    job = cluster.sbatch("srun true", user="alice", w=node, **options)
    assert cluster.wait_job(job) == ["COMPLETED"]
    assert [row["NodeList"] for row in cluster.wait_accounted(job)] == [node]

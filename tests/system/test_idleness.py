"""`gpuwaste idle` on a real cluster with real munge: an idle job is yes, its node too; what works is no."""

import json

import pytest
from tests.system.conftest import SiteFactory

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.running_site import SiteOptions

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def test_idle_answers_by_the_real_slurmctld(cluster: LoopbackCluster, make_site: SiteFactory) -> None:
    """Alice's job idles: yes for her and for its node; bob finds no job; a job that works is no."""
    # one pause of 2.5 intervals on a busy host leaves the rest of the hour unknown
    site = make_site(cluster, SiteOptions(interval_s=5.0, ship_every_s=1.0, sacct_every_s=1.0))
    first, second = list(site.nodes)[:2]
    site.start_hub()
    for node in (first, second):
        site.start_agent(node)
    idle = site.submit("alice", "--phase 1800:0", w=first, gres="gpu:1")
    busy = site.submit("bob", "--phase 1800:50", w=second, gres="gpu:1")
    for job in (idle, busy):
        cluster.wait_job(job, "RUNNING")
    said = [""]

    def yes() -> bool:
        done = site.gpuwaste("idle", str(idle), "--for", "60s", "--max-age", "10m", "--json", user="alice", check=False)
        said[0] = done.stdout + done.stderr
        return done.returncode == 0

    wait_until(yes, 400, "the idle job to be idle", lambda: said[0][:3000], poll_s=2.0)
    found = json.loads(said[0])
    assert (found["answer"], [run["jobid"] for run in found["runs"]]) == ("yes", [str(idle)])
    assert found["as_of"] - found["since"] >= 60
    assert site.gpuwaste("idle", str(busy), "--for", "60s", user="bob", check=False).returncode == 5
    assert site.gpuwaste("idle", str(idle), user="bob", check=False).returncode == 3

    def yes_of_node() -> bool:  # the hub looks at slurmctld's queue only after the first question about a node
        done = site.gpuwaste("idle", "--node", first, "--for", "60s", "--max-age", "10m", user="root", check=False)
        said[0] = done.stdout + done.stderr
        return done.returncode == 0

    wait_until(yes_of_node, 60, "the node to be idle", lambda: said[0][:3000], poll_s=2.0)
    assert site.gpuwaste("idle", "--node", first, user="alice", check=False).returncode == 3

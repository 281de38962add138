"""`gpuwaste now` on a real cluster: the idle GPU, the node without an agent, the queue, and what each user sees."""

import json
from typing import Any

import pytest
from tests.system.conftest import SiteFactory

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.running_site import SiteOptions

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(480)]


def test_now_tells_the_idle_gpu_the_silent_node_and_the_queue(cluster: LoopbackCluster, make_site: SiteFactory) -> None:
    """Alice's job idles under an agent, bob's runs on a node without one, an array waits: each is told, to its own."""
    site = make_site(cluster, SiteOptions(interval_s=1.0, ship_every_s=1.0, sacct_every_s=1.0))
    watched, silent = list(site.nodes)[:2]
    config = site.config_path("hub")
    text = config.read_text(encoding="utf-8").replace("[agent]\n", "")
    config.write_text(f"{text}\n[agent]\nship_every_s = 25.0\n", encoding="utf-8")
    site.start_hub()
    site.start_agent(watched)
    idle = site.submit("alice", "--phase 600:0", w=watched, gres="gpu:1", job_name="sleeper")
    unseen = site.submit("bob", "--phase 600:50", w=silent, gres="gpu:1")
    for job in (idle, unseen):
        cluster.wait_job(job, "RUNNING")
    site.submit("bob", "--phase 1:50", w=watched, gres="gpu:4", array="0-4")
    seen: dict[str, Any] = {}

    def complete() -> bool:
        seen.update(site.json("now", user="root"))
        found = {job["jobid"] for job in seen["idle"]}, {node["node"] for node in seen["silent"]}
        counted = all(job["wasted_s"] for job in seen["idle"])  # idle from the first second on, wasted after a minute
        return found == ({str(idle)}, {silent}) and bool(seen["queue"]) and counted

    wait_until(complete, 240, "now to tell all three", lambda: json.dumps(seen)[:3000], poll_s=2.0)
    (job,) = seen["idle"]
    assert (job["user"], job["name"], job["idle"], job["never_active"], job["nodes"]) == (
        "alice", "sleeper", 1, 1, [watched],
    )  # fmt: skip
    assert 0 < job["wasted_s"] <= seen["generated"] - job["start"]
    assert (seen["silent"][0]["gpus"], seen["silent"][0]["jobs"]) == (1, 1)
    assert [(row["jobs"], row["gpus"]) for row in seen["queue"]] == [(5, 20)]
    assert seen["totals"]["gpus"] == sum(len(node.minors) for node in cluster.nodes.values())
    hers, his = (site.json("now", user=user) for user in ("alice", "bob"))
    assert ([row["jobid"] for row in hers["idle"]], hers["silent"]) == ([str(idle)], [])
    assert (his["idle"], [row["node"] for row in his["silent"]]) == ([], [silent])
    assert hers["totals"]["silent_nodes"] == his["totals"]["idle_jobs"] == 1
    assert "alice" not in json.dumps(his)
    assert "sleeper" in site.gpuwaste("now", user="alice").stdout
    assert site.gpuwaste("now", "--fail-above", "10", user="alice", check=False).returncode == 4

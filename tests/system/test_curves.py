"""A job's curves on a real cluster: agents that sample, munge, accounting, and a real Prometheus."""

import json
import time
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import running_hub
from tests.integration.hub.test_reads import ALICE
from tests.system.conftest import SiteFactory
from tests.system.prometheus_server import Prometheus
from tests.system.test_prometheus import exporter, jobs, prometheus

from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.curves.prometheus_curves import PrometheusSamples
from gpuwaste.net.request_signing import request_digest
from gpuwaste.net.sample_query import RunWindow, SampleQuestion
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.hub_rows import record
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site, SiteOptions

__all__ = ["exporter", "jobs", "prometheus"]
NODE = "gpu1"


def asked(site: Site, user: str, target: str, port: int = 0) -> tuple[int, bytes]:
    """Ask the hub, or what listens at a port of this host, with the user's own munge credential."""
    argv = ["munge", f"--socket={site.cluster.munge_socket}", f"--string={request_digest('GET', target, b'')}"]
    credential = site.cluster.run(argv, user).stdout.strip().replace("\n", "")
    connection = HTTPConnection("127.0.0.1", port or site.hub_port, timeout=patient(60))
    try:
        connection.request("GET", target, headers={"Authorization": f"Munge {credential}"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def node_of(site: Site, job: int) -> dict[str, Any]:
    """Return what alice is told of her job on its one node."""
    status, body = asked(site, "alice", f"/v1/jobs/{job}/curves")
    assert status == 200, body
    (run,) = json.loads(body)["runs"]
    (found,) = run["nodes"]
    return dict(found)


@pytest.mark.cluster
def test_a_job_s_samples_come_from_its_node(cluster: LoopbackCluster, make_site: SiteFactory) -> None:
    """Alice's load is in the curves of her GPU alone; bob gets none, not even from the agent; hours follow the node."""
    name = next(node for node in cluster.nodes if node.endswith(NODE))
    site = make_site(cluster, SiteOptions(interval_s=1.0, ship_every_s=2.0, sacct_every_s=1.0))
    site.options = replace(site.options, hub={"agent_url": f"http://127.0.0.1:{site.exporters[name]}"})
    site.refresh_config()
    site.start_hub()
    agent = site.start_agent(name)
    job = site.submit("alice", "--phase 8:60", gres="gpu:1", nodelist=name)
    device = site.wait_reported(job, 1)["runs"][0]["devices"][0]
    found = node_of(site, job)
    assert (found["state"], found["source"], found["interval_ms"]) == ("answered", "agent", 0)
    (gpu,) = found["gpus"]
    assert gpu["gpu_uuid"] == device["gpu_uuid"]
    busy = [value for value in gpu["util_pct"]["mean"] if value]
    assert len(busy) >= 4
    assert max(busy) == pytest.approx(60, abs=5)
    assert len(gpu["mem_used_b"]["mean"]) == len(gpu["power_w"]["mean"]) == len(found["t_ms"])
    assert asked(site, "bob", f"/v1/jobs/{job}/curves") == asked(site, "bob", "/v1/jobs/999999/curves")
    run = json.loads(asked(site, "alice", f"/v1/jobs/{job}")[1])["runs"][0]
    window = RunWindow(job, run["start"], run["start"] * 1_000_000, run["end"] * 1_000_000, 2000)
    target = SampleQuestion(name, window).target
    for user in ("alice", "bob"):
        assert asked(site, user, target, site.exporters[name])[0] == 403
    agent.stop()
    assert node_of(site, job)["gpus"]  # kept
    assert site.hub
    site.hub.stop()
    site.start_hub()
    without = node_of(site, job)
    assert (without["state"], without["gpus"]) == ("unreachable", [])
    assert without["hours"][0]["gpu_uuid"] == device["gpu_uuid"]


def test_prometheus_has_what_a_node_does_not(prometheus: Prometheus, tmp_path: Path) -> None:
    """Of two GPUs that are scraped, the one that the job held is drawn, and only since it was seen to hold it."""
    prometheus.wait_for('gpuwaste_gpu_job_info{jobid="77"}', "the job's GPU")
    now = int(time.time())
    window = RunWindow(77, now - 3600, (now - 60) * 1_000_000, (now + 60) * 1_000_000, 2000)
    samples = PrometheusSamples(prometheus.url, "")
    question = SampleQuestion("gpu1", window)
    wait_until(lambda: samples.ask(question, ()) is not None, 60, "a value of the job", poll_s=1.0)
    node = samples.ask(question, ())
    assert node
    (gpu,) = node.gpus
    assert (node.state, node.source, node.interval_ms, gpu.gpu_uuid) == ("answered", "prometheus", 15_000, "GPU-1")
    assert gpu.util_pct
    assert {value for value in gpu.util_pct.mean if value is not None} == {31.0}
    assert gpu.util_pct.mean[0] is None
    assert len(gpu.util_pct.mean) == len(node.t_ms)
    assert gpu.power_w is None
    assert samples.ask(SampleQuestion("gpu1", replace(window, job_id=78)), ()) is None
    assert samples.ask(question, ("GPU-0",)) is None
    with running_hub(tmp_path / "hub", hub_keys={"prometheus_url": prometheus.url}) as hub:
        run: dict[str, Any] = {"submit": now - 60, "start": now - 60, "end": now + 60, "state": "COMPLETED"}
        upsert_jobs(hub.store, [record(77, "alice", **run)])
        (told,) = hub.get(ALICE, "/v1/jobs/77/curves").json["runs"][0]["nodes"]
    assert (told["state"], told["source"], [found["gpu_uuid"] for found in told["gpus"]]) == (
        "answered",
        "prometheus",
        ["GPU-1"],
    )

"""The hub on a real Slurm cluster: real munge, real accounting, real maps, and its own death."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.ledger.hour import AllocationHour, encode_hour
from gpuwaste.net.batch import Batch, Envelope, encode_batch
from gpuwaste.net.request_signing import request_digest
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster import LoopbackCluster, ManagedProcess
from gpuwaste.testing.cluster_directory import CLUSTER_NAME
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site, SiteOptions

pytestmark = [pytest.mark.core, pytest.mark.cluster]


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


class Front:
    """One hub of one cluster, asked as any user with real munge credentials."""

    def __init__(self, cluster: LoopbackCluster, native: Path) -> None:
        self.cluster = cluster
        self.site = Site(cluster, native, SiteOptions(sacct_every_s=1.0))
        self.site.prepare()
        self.hub: ManagedProcess = self.site.start_hub()

    def credential(self, user: str, method: str, target: str, body: bytes = b"", node: str = "") -> str:
        """Return a fresh Authorization made by `user`, on a node or on the hub's host."""
        socket = self.cluster.nodes[node].munge_socket if node else self.cluster.munge_socket
        argv = ["munge", f"--socket={socket}"]
        made = self.cluster.run([*argv, f"--string={request_digest(method, target, body)}"], user)
        return f"Munge {made.stdout.strip()}".replace("\n", "")

    def send(self, method: str, target: str, body: bytes = b"", authorization: str = "") -> Answer:
        """Send a request."""
        connection = HTTPConnection("127.0.0.1", self.site.hub_port, timeout=patient(30))
        connection.request(method, target, body or None, {"Authorization": authorization} if authorization else {})
        response = connection.getresponse()
        answer = Answer(response.status, response.getheaders(), response.read())
        connection.close()
        return answer

    def get(self, user: str, target: str) -> Answer:
        """Read as a user."""
        return self.send("GET", target, authorization=self.credential(user, "GET", target))

    def post(self, body: bytes, user: str = "gpuwaste", node: str = "gpu1") -> Answer:
        """Send a batch as a user on a node."""
        return self.send("POST", "/v1/hours", body, self.credential(user, "POST", "/v1/hours", body, node))

    def finished_job(self, user: str, **options: Any) -> int:
        """Run a short job and wait until the hub has its end from accounting."""
        job = self.cluster.sbatch("true", user, output="/dev/null", **options)
        self.cluster.wait_job(job)

        def known() -> bool:
            found = self.get("root", f"/v1/jobs/{job}")
            return found.status == 200 and found.json["runs"][0]["state"] == "COMPLETED"

        wait_until(known, 60, f"job {job} in the hub", poll_s=0.3)
        return job


@pytest.fixture(scope="module")
def front(cluster: LoopbackCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    cluster.reset()
    front = Front(cluster, tmp_path_factory.mktemp("native"))
    yield front
    front.site.stop()
    cluster.reset()


def batch(job: int, start: int, node: str = "gpu1") -> bytes:
    """Return a batch of one row of ten seconds."""
    t0 = start // 3600 * 3600
    hour = AllocationHour(
        RunKey(CLUSTER_NAME, job, start), node, "GPU-a", t0, 1, t0 * 1000, t0 * 1000 + 10_000, util_ms={50: 10_000}
    )
    return encode_batch(Envelope(CLUSTER_NAME, node, "boot", "0"), Batch((encode_hour(hour),)))


def test_a_job_is_read_by_its_owner_and_not_there_for_others(front: Front) -> None:
    """A finished job comes from accounting; alice, her coordinator and root read it, bob cannot tell it from none."""
    job = front.finished_job("alice", gres="gpu:1")
    found = front.get("alice", f"/v1/jobs/{job}").json["runs"][0]
    assert (found["user"], found["gpus"], found["state"]) == ("alice", 1, "COMPLETED")
    assert front.get("carol", f"/v1/jobs/{job}").status == 200
    foreign, missing = front.get("bob", f"/v1/jobs/{job}"), front.get("bob", "/v1/jobs/999999")
    assert (foreign.status, foreign.headers, foreign.body) == (404, missing.headers, missing.body)
    assert front.get("bob", "/v1/report?user=alice").body == missing.body
    captured = front.credential("alice", "GET", f"/v1/jobs/{job}")
    assert front.send("GET", f"/v1/jobs/{job}", authorization=captured).status == 200
    assert front.send("GET", f"/v1/jobs/{job}", authorization=captured).status == 401


def test_hours_are_taken_from_their_own_node_only(front: Front) -> None:
    """The agents' user on gpu1 sends gpu1's hours; from gpu2, as alice, or a second time, they are refused."""
    body = batch(900001, int(time.time()))
    assert front.post(body, node="gpu2").status == 403
    assert front.post(body, user="alice").status == 403
    authorization = front.credential("gpuwaste", "POST", "/v1/hours", body, "gpu1")
    first = front.send("POST", "/v1/hours", body, authorization)
    assert (first.status, first.json["accepted"]) == (200, 1)
    assert {k.lower(): v for k, v in first.headers}["gpuwaste-ack"].startswith("MUNGE:")
    again = front.send("POST", "/v1/hours", body, authorization)
    assert (again.status, again.json["retry"]) == (401, False)


def test_two_nodes_cost_one_question(front: Front) -> None:
    """A job on two nodes: each agent gets its own positions and the start, and slurmctld is asked once."""
    job = front.cluster.sbatch("sleep 60", "alice", gres="gpu:2", nodes=2, output="/dev/null")
    front.cluster.wait_job(job, "RUNNING")
    before = questions(front)
    answers = [front.get("gpuwaste", f"/v1/map?node={node}&job={job}").json for node in ("gpu1", "gpu2", "gpu1")]
    assert questions(front) - before == 1
    run = answers[0]["jobs"][0]
    assert answers[1] == answers[0]
    assert {name: len(held["positions"]) for name, held in run["nodes"].items()} == {"gpu1": 2, "gpu2": 2}
    front.cluster.run(["scancel", str(job)])
    front.cluster.wait_job(job)
    rows = front.cluster.sacct("-j", str(job), "-X", "--format=Start")
    assert rows
    assert run["start"] > 0


def test_metrics_are_clean_and_name_no_user(front: Front) -> None:
    """Prometheus' own checker finds nothing to say, and no user's name is in it."""
    front.finished_job("alice")
    text = front.send("GET", "/metrics").body
    assert b"alice" not in text
    assert b"gpuwaste_hub_accounting_success 1.0" in text
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_a_second_hub_is_refused(front: Front) -> None:
    """A hub on a store in use ends at once, with one line that says who holds it."""
    argv = front.site.runtime.command("hub", "run", "--config", str(front.site.config_path("hub")))
    done = front.cluster.run(argv, "gpuwaste", env=front.site.runtime.env, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(front.hub.pid) in done.stderr.strip().splitlines()[-1]


def test_what_was_acknowledged_survives_kill_9(front: Front) -> None:
    """A hub killed right after its acknowledgement has the row when it is back, and takes the same again once."""
    body = batch(900002, int(time.time()))
    assert front.post(body).status == 200
    rows = hours(front)
    front.hub.kill()
    front.hub = front.site.start_hub()
    assert hours(front) == rows
    assert front.post(body).json["accepted"] == 1
    assert hours(front) == rows


def test_accounting_that_is_down_is_told(front: Front) -> None:
    """While sacct cannot be run the hub answers, says so in its health, and recovers by itself."""
    wait_until(lambda: front.send("GET", "/v1/health").json["accounting"]["ok"], 60, "a good import", poll_s=0.2)
    conf = front.cluster.layout.slurm_conf
    text = conf.read_text()
    conf.write_text("this is no slurm.conf\n")
    try:
        wait_until(
            lambda: front.send("GET", "/v1/health").json["status"] == "degraded", 60, "a failed import", poll_s=0.2
        )
        assert front.get("alice", "/v1/report").status == 200
    finally:
        conf.write_text(text)
    wait_until(lambda: front.send("GET", "/v1/health").json["status"] == "ok", 60, "a good import", poll_s=0.2)


def test_sigterm_ends_in_order(front: Front) -> None:
    """SIGTERM ends the hub with exit code 0, and its store opens again."""
    front.hub.signal(signal.SIGTERM)
    assert front.hub.wait(30) == 0
    front.hub = front.site.start_hub()
    assert front.send("GET", "/v1/health").status == 200


def questions(front: Front) -> int:
    return round(sum(value(front, "gpuwaste_hub_map_questions_total")))


def hours(front: Front) -> float:
    return sum(value(front, 'gpuwaste_hub_store_rows{table="hours"}'))


def value(front: Front, series: str) -> list[float]:
    lines = front.send("GET", "/metrics").body.decode().splitlines()
    return [float(line.split()[-1]) for line in lines if line.startswith(series)]

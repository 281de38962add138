"""GET /v1/jobs/ID/curves with a real agent's store behind real munge: who sees what, and why something is not there."""

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.registry import CollectorRegistry
from tests.integration.agent.sample_node import HUB, Node, answering_node
from tests.integration.hub.rig import Rig, running_hub
from tests.integration.hub.test_reads import ALICE, BOB, CAROL, OPER, seen
from tests.unit.agent.fakes import START_US
from tests.unit.agent.samples import BASE, at

from gpuwaste.agent import sample_server
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.net.metrics_server import MetricsServer, Reply
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import batch, hour, record
from gpuwaste.testing.lone_hub import munged_path

pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]
START = START_US // 1_000_000
RUN: dict[str, Any] = {"submit": START - 60, "start": START, "end": START + 300}
SAMPLE = replace(BASE, run_key=RunKey("gw", 9, START))


@pytest.fixture
def node(munge: str, tmp_path: Path) -> Iterator[Node]:
    with answering_node(munge, tmp_path) as node:
        for n in range(1, 31):
            node.store.append([replace(at(SAMPLE, n), util_pct=float(n))])
        yield node


class Hubs:
    """Starts hubs that ask agents at a URL."""

    def __init__(self, directory: Path, munge: str, stack: ExitStack) -> None:
        self._directory = directory
        self._munge = munge
        self._stack = stack

    def __call__(self, agent_url: str, slurm: FakeSlurm | None = None, **hub_keys: Any) -> Rig:
        """Return a running hub in which job 9 is alice's, on gpu1."""
        issuer = MungeIssuer(Munge(self._munge), HUB)
        keys = {"agent_url": agent_url, **hub_keys}
        rig = self._stack.enter_context(running_hub(self._directory, slurm, agents=issuer, hub_keys=keys))
        upsert_jobs(rig.store, [record(9, "alice", **RUN)])
        return rig


@pytest.fixture
def hubs(tmp_path: Path, munge: str) -> Iterator[Hubs]:
    with ExitStack() as stack:
        yield Hubs(tmp_path / "hub", munge, stack)


def curves(hub: Rig, target: str = "/v1/jobs/9/curves", uid: int = ALICE) -> dict[str, Any]:
    """Return the document."""
    answer = hub.get(uid, target)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def an_hour(**more: Any) -> bytes:
    """Return a batch with five minutes of job 9 at 50 %, 8 GiB at most and 60 kJ."""
    values = {
        "run_key": RunKey("gw", 9, START),
        "hour_utc": START,
        "t0_ms": START * 1000,
        "t1_ms": START * 1000 + 300_000,
        "util_ms": {40: 150_000, 60: 150_000},
        "mem_max_b": 8 << 30,
        "energy_j": 60_000.0,
    }
    return batch(hour(9, **{**values, **more}))


HOUR_MEAN = {
    "gpu_uuid": "GPU-a",
    "t0_ms": START * 1000,
    "t1_ms": START * 1000 + 300_000,
    "util_pct": 50.0,
    "mem_max_b": 8 << 30,
    "power_w": 200.0,
    "cpus": None,
}


def test_the_owner_sees_the_samples_and_others_see_no_job(node: Node, hubs: Hubs) -> None:
    """Alice, her coordinator and an operator read every sample of the run; bob's answer is that for no job."""
    hub = hubs(f"http://127.0.0.1:{node.port}")
    (run,) = curves(hub)["runs"]
    (found,) = run["nodes"]
    (gpu,) = found["gpus"]
    assert (run["jobid"], run["start"], run["end"], run["nodes_left_out"]) == (9, START, START + 300, 0)
    assert (found["node"], found["state"], found["source"], found["words"]) == ("gpu1", "answered", "agent", "")
    assert found["t_ms"] == [(START + 10 * n) * 1000 for n in range(1, 31)]
    assert gpu["util_pct"] == {"mean": [float(n) for n in range(1, 31)], "min": None, "max": None}
    assert (gpu["power_w"]["mean"][0], gpu["mem_used_b"]["mean"][0], gpu["gpu_uuid"]) == (70, 123 << 10, "GPU-a")
    assert curves(hub, uid=CAROL)["runs"] == curves(hub, uid=OPER)["runs"] == [run]
    for target in ("/v1/jobs/9/curves", "/v1/jobs/9/curves?node=gpu1"):
        assert seen(hub.get(BOB, target)) == seen(hub.get(BOB, "/v1/jobs/4711"))
    assert seen(hub.get(ALICE, "/v1/jobs/9/curves?node=gpu2")) == seen(hub.get(BOB, "/v1/jobs/4711"))


def test_an_ended_run_is_asked_for_once(node: Node, hubs: Hubs) -> None:
    """With the agent gone, the curves of a run that ended are still there, packed where the reader takes that."""
    hub = hubs(f"http://127.0.0.1:{node.port}")
    before = curves(hub)
    node.exporter.stop()
    assert curves(hub) == before
    target = "/v1/jobs/9/curves"
    packed = hub.send(
        "GET", target, headers={"Authorization": hub.credential(ALICE, "GET", target), "Accept-Encoding": "gzip"}
    )
    assert packed.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed.body)) == before


def test_hours_stand_in_for_what_a_node_does_not_tell(node: Node, hubs: Hubs) -> None:
    """A node that is gone, one whose agent does not answer and one past its retention are called so, beside hours."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    hub = hubs(f"http://127.0.0.1:{port}")
    upsert_jobs(hub.store, [record(9, "alice", **RUN, nodes="gpu[1,9]", n_nodes=2)])
    assert hub.post(an_hour()).json["accepted"] == 1
    first, last = curves(hub)["runs"][0]["nodes"]
    assert (first["state"], first["gpus"], first["hours"]) == ("unreachable", [], [HOUR_MEAN])
    assert (last["node"], last["state"], last["words"]) == ("gpu9", "gone", "Slurm no longer has this node")


def test_a_run_past_retention_is_called_so(node: Node, hubs: Hubs) -> None:
    """Of a run before the node's oldest day come its hours, and for how long the node keeps samples."""
    hub = hubs(f"http://127.0.0.1:{node.port}")
    old = START - 20 * 86_400
    upsert_jobs(hub.store, [record(8, "alice", submit=old, start=old, end=old + 300)])
    row = {"run_key": RunKey("gw", 8, old), "hour_utc": old, "t0_ms": old * 1000, "t1_ms": old * 1000 + 300_000}
    assert hub.post(an_hour(**row)).json["accepted"] == 1
    (found,) = curves(hub, "/v1/jobs/8/curves")["runs"][0]["nodes"]
    assert (found["state"], found["words"]) == ("past_retention", "the node keeps samples for 14 days")
    assert (found["kept_since"], found["kept_days"], len(found["hours"])) == (START, 14, 1)


def test_an_agent_that_does_not_serve_samples_is_called_so(munge: str, hubs: Hubs) -> None:
    """An older agent's exporter has /metrics alone: the hub says so, and the hours are there."""
    older = MetricsServer("127.0.0.1:0", CollectorRegistry(), section="agent")
    older.start()
    hub = hubs(f"http://127.0.0.1:{older.port}")
    assert hub.post(an_hour()).status == 200
    (found,) = curves(hub)["runs"][0]["nodes"]
    assert (found["state"], found["hours"]) == ("not_served", [HOUR_MEAN])
    older.stop()


def test_without_a_configured_url_no_agent_is_asked(hub: Rig) -> None:
    """A hub as it is installed asks no agent: the hours are there, and why nothing else is."""
    upsert_jobs(hub.store, [record(9, "alice", **RUN)])
    assert hub.post(an_hour()).status == 200
    (found,) = curves(hub)["runs"][0]["nodes"]
    assert (found["state"], found["words"]) == (
        "not_asked",
        "no samples are read from nodes ([hub] agent_url is not set)",
    )
    assert found["hours"] == [HOUR_MEAN]


def test_gpus_that_the_ledger_does_not_know_of_the_run_are_left_out(node: Node, hubs: Hubs) -> None:
    """Where the ledger has the run's GPUs, those alone are shown; before that, as many as accounting says."""
    other = replace(SAMPLE, gpu_uuid="GPU-z")
    node.store.append([at(SAMPLE, 31), at(other, 31)])
    hub = hubs(f"http://127.0.0.1:{node.port}")
    (found,) = curves(hub)["runs"][0]["nodes"]
    assert ([gpu["gpu_uuid"] for gpu in found["gpus"]], found["gpus_left_out"]) == (["GPU-a"], 1)
    upsert_jobs(hub.store, [record(9, "alice", **{**RUN, "end": START + 301}, gpus=2)])
    assert hub.post(an_hour(gpu_uuid="GPU-z")).json["accepted"] == 1
    (found,) = curves(hub)["runs"][0]["nodes"]
    assert ([gpu["gpu_uuid"] for gpu in found["gpus"]], found["gpus_left_out"]) == (["GPU-z"], 1)


@pytest.mark.long
def test_older_runs_are_counted_within_what_the_reader_may_see(node: Node, hubs: Hubs) -> None:
    """Of six runs of an id the newest four are drawn; an operator's answer, kept, tells alice nothing of bob's run."""
    hub = hubs(f"http://127.0.0.1:{node.port}")
    times: list[dict[str, Any]] = [
        {"submit": START - at_s, "start": START - at_s, "end": START - at_s + 10} for at_s in (60, 120, 180, 240)
    ]
    upsert_jobs(hub.store, [record(9, "alice", **more, state="REQUEUED") for more in times])
    upsert_jobs(hub.store, [record(9, "bob", "proj2", submit=START - 900, start=START - 900, end=START - 800)])
    told = {uid: curves(hub, uid=uid) for uid in (OPER, ALICE)}
    assert [run["start"] for run in told[ALICE]["runs"]] == [START, START - 60, START - 120, START - 180]
    assert told[OPER]["runs"] == told[ALICE]["runs"]
    assert {uid: found["runs_left_out"] for uid, found in told.items()} == {OPER: 2, ALICE: 1}


def test_the_runs_of_a_node_are_asked_one_after_the_other(
    node: Node, hubs: Hubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was requeued on one node asks its agent four times, and no question meets another one."""
    refused: list[int] = []
    words = sample_server._words

    def noted(status: HTTPStatus, *rest: Any) -> Reply:
        refused.append(int(status))
        return words(status, *rest)

    monkeypatch.setattr(sample_server, "_words", noted)
    hub = hubs(f"http://127.0.0.1:{node.port}")
    earlier: list[dict[str, Any]] = [
        {"submit": START - at_s, "start": START - at_s, "end": START - at_s + 10} for at_s in (60, 120, 180)
    ]
    upsert_jobs(hub.store, [record(9, "alice", **more, state="REQUEUED") for more in earlier])
    runs = curves(hub)["runs"]
    assert [node["state"] for run in runs for node in run["nodes"]] == ["answered"] + ["past_retention"] * 3
    assert refused == []


def test_only_so_many_nodes_are_asked_and_one_can_be_picked(node: Node, hubs: Hubs) -> None:
    """Of a run on 40 nodes the first 16 are asked, the others are counted, and each of them can be asked for."""
    slurm = FakeSlurm(node_list=[])
    hub = hubs(f"http://127.0.0.1:{node.port}", slurm)
    upsert_jobs(hub.store, [record(9, "alice", **RUN, nodes="gpu[1-40]", n_nodes=40)])
    (run,) = curves(hub)["runs"]
    assert (len(run["nodes"]), run["nodes_left_out"]) == (16, 24)
    (run,) = curves(hub, "/v1/jobs/9/curves?node=gpu40")["runs"]
    assert ([found["node"] for found in run["nodes"]], run["nodes_left_out"]) == (["gpu40"], 0)

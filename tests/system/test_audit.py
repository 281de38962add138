"""The audit on a real Slurm cluster: a token in AdminComment joins a verdict with its job's end, through real munge."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.system.test_hub import Front

from gpuwaste.advice.verdicts.verdict_batch import encode_verdict
from gpuwaste.jobs.verdict import Verdict, new_id
from gpuwaste.net.batch import Batch, Envelope, encode_batch
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_directory import CLUSTER_NAME
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]  # a cluster, and jobs whose ends reach the hub

TARGET = "/v1/verdicts"
LINE = "gpuwaste: 3 of your last 4 jobs named wrap failed"
GO = "while [ ! -e {go} ]; do sleep 0.2; done; exit 3"


@pytest.fixture(scope="module")
def front(cluster: LoopbackCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    cluster.reset()
    front = Front(cluster, tmp_path_factory.mktemp("native"))
    yield front
    front.site.stop()
    cluster.reset()


def said(**more: Any) -> Verdict:
    """Return a verdict of now."""
    at = time.time_ns() // 1000
    values: dict[str, Any] = {
        "id": new_id(at), "cluster": CLUSTER_NAME, "at_utc_us": at, "op": "submit", "policy": "site", "mode": "warn",
        "action": "warn", "would_be": "warn", "user": "alice", "account": "proj1", "name": "wrap",
        "p": {"failure": 0.75}, "triggers": {"failure": 0.75}, "lines": (LINE,), "script": "00ff00ff00ff00ff",
    }  # fmt: skip
    return Verdict(**{**values, **more})


def post(front: Front, *verdicts: Verdict, user: str = "gpuwaste") -> int:
    """Send verdicts with a user's real credential; returns the status."""
    rows = tuple(encode_verdict(row) for row in verdicts)
    body = encode_batch(Envelope(CLUSTER_NAME, "controller", "boot", "0"), Batch(rows))
    return front.send("POST", TARGET, body, front.credential(user, "POST", TARGET, body)).status


def audited(front: Front, verdict: Verdict) -> dict[str, Any]:
    """Return how a verdict stands, as an operator sees it."""
    rows = front.get("root", f"{TARGET}?start=0").json["verdicts"]
    (found,) = [row for row in rows if row["id"] == verdict.id]
    return dict(found)


def test_a_token_in_the_comment_joins_the_verdict_with_the_job_s_end(front: Front) -> None:
    """Written by an operator beside other text while the jobs run; told by accounting at their end, in 22.05."""
    cluster = front.cluster
    go = f"/tmp/gwaudit-{cluster.directory.name}-{time.time_ns()}"  # noqa: S108 a file that all users of the test see
    one, tasks, hidden = said(), said(), said(action="pass", mode="shadow", held="shadow")
    assert post(front, one, user="alice") == 403
    assert post(front, one, tasks, hidden) == 200
    job = cluster.sbatch(GO.format(go=go), "alice", output="/dev/null")
    array = cluster.sbatch(GO.format(go=go), "alice", output="/dev/null", array="0-1")
    quiet = cluster.sbatch(GO.format(go=go), "alice", output="/dev/null")
    try:
        for number in (job, array, quiet):
            cluster.wait_job(number, "RUNNING")
        for number, verdict in ((job, one), (array, tasks), (quiet, hidden)):
            comment = f'moved "by" ops|twice;gw={verdict.id}'
            cluster.run(["scontrol", "update", f"job={number}", f"admincomment={comment}"])
        assert audited(front, one)["stands"] == "open"
    finally:
        cluster.run(["touch", go])
    for number in (job, array, quiet):
        cluster.wait_job(number)
        cluster.wait_accounted(number, 60)
    wait_until(
        lambda: [audited(front, verdict)["runs"] for verdict in (one, tasks, hidden)] == [1, 2, 1],
        60,
        "the jobs' ends in the audit",
        front.hub.tail,
        poll_s=0.5,
    )
    found = audited(front, one)
    assert (found["job_ids"], found["states"], found["stands"], found["hit"]) == ([str(job)], ["FAILED"], "ended", True)
    assert sorted(audited(front, tasks)["job_ids"]) == [f"{array}_0", f"{array}_1"]
    assert [row["lines"] for row in front.get("alice", f"/v1/jobs/{job}").json["advice"]] == [[LINE]]
    assert front.get("alice", f"/v1/jobs/{quiet}").json["advice"] == []
    assert front.get("bob", f"/v1/jobs/{job}").status == 404
    mine = {row["id"] for row in front.get("alice", TARGET).json["verdicts"]}
    assert (one.id in mine, hidden.id in mine) == (True, False)
    events = front.get("root", "/v1/history?after=0&limit=10000").json["events"]
    ends = [event for event in events if event["kind"] == "ended" and event["jobid"] == job]
    assert [event["script"] for event in ends] == ["00ff00ff00ff00ff"]
    standing = front.get("gpuwaste", f"{TARGET}/score").json["standing"]
    assert standing["site"] == {"precision": 1.0, "n": 3}
    cluster.run(["rm", "-f", go])

"""The hub and the advisor judge the same submission alike: the same policy, action and lines."""

import json
import time
from typing import Any

from tests.integration.hub.rig import Rig
from tests.integration.hub.test_predict import ALICE, OPER, PATH, ended

from gpuwaste.advisor.judge import Judge, Knowledge, Submission
from gpuwaste.advisor.spending import Accounts
from gpuwaste.core.clock import SystemClock
from gpuwaste.policy.facts import Decision
from gpuwaste.slurm.job_desc import read_job_desc

POLICY = """
[policy]
name = "both"
mode = "warn"
[targets.failure]
warn = 0.7
[targets.gpus]
warn = 0.9
"""


def _advised(hub: Rig, name: str, gpus: int) -> Decision:
    """Return what an advisor with the hub's own knowledge decides on a submission of alice's."""
    live: Any = hub.services.predictions._live
    knowledge = Knowledge(
        live._predictor, live._follower.state, live._follower.recall, hub.services.predictions._policies.policies
    )
    judge = Judge("gw", knowledge, Accounts(), SystemClock())
    desc = read_job_desc(
        {"user_id": ALICE, "name": name, "tres_per_node": f"gres:gpu:{gpus}", "partition": "gpu"}, ALICE
    )
    now = int(time.time())
    request = desc.request("alice", now)
    submission = Submission(desc, "submit", request, frozenset(), stale=False, at_utc_us=now * 1_000_000, arrived_us=0)
    ((_, decision),) = judge.judge([submission])
    return decision


def _hub_says(hub: Rig, uid: int, name: str, gpus: int) -> dict[str, Any]:
    request = {"user": "alice", "name": name, "gpus": gpus, "partition": "gpu", "nodes": 1}
    body = json.dumps({"requests": [request]}).encode()
    answer = hub.send("POST", PATH, body, {"Authorization": hub.credential(uid, "POST", PATH, body)})
    said: dict[str, Any] = answer.json["predictions"][0]["policy"]
    return said


def test_the_advisor_says_what_the_hub_says(hub: Rig) -> None:
    """Of a job that fails, of one that leaves GPUs idle, and of one without a past."""
    folder = hub.directory / "policies.d"
    folder.mkdir()
    (folder / "a.toml").write_text(POLICY)
    gpus: dict[str, Any] = {"req_tres": "cpu=4,mem=8G,node=1,gres/gpu=4", "gpus": 4, "name": "wide"}
    wide = [ended(n, state="COMPLETED", **gpus) for n in range(11, 15)]
    hub.store.upsert_jobs([*(ended(n) for n in range(1, 6)), *wide])
    predictions = hub.services.predictions
    predictions.step()
    live: Any = predictions._live
    for job in wide:  # what the ledger tells of them
        live._follower.recall.used(job, 1)
    said = {}
    for name, count in (("train", 0), ("wide", 4), ("new", 4)):
        hers, advised = _hub_says(hub, ALICE, name, count), _advised(hub, name, count)
        assert (hers["action"], tuple(hers["lines"])) == (advised.action, advised.lines), name
        assert _hub_says(hub, OPER, name, count)["would_be"] == advised.would_be
        said[name] = (advised.action, *advised.lines[1:])
    assert said["train"][:2] == ("warn", "gpuwaste: 5 of your last 5 jobs named train failed")
    assert said["wide"][1:] == (
        "gpuwaste: your last 4 jobs named wide used 1 of 4 GPUs",
        "gpuwaste: use --gres=gpu:1",
    )
    assert said["new"] == ("pass",)

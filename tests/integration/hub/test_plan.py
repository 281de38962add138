"""GET and POST /v1/plan over real HTTP: starts from a queue that only the hub sees, and nobody else's jobs in it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Answer, Rig
from tests.unit.plan.test_live_queue import NODE_LIST, NOW, job
from tests.unit.plan.when.queues import exactly
from tests.unit.plan.when.queues import queue as small_queue

from gpuwaste.net.hub_client import HubClient
from gpuwaste.plan import expectations as hub_expectations
from gpuwaste.plan.expectations import LEARN_S, Expectations
from gpuwaste.plan.start_time.start_expectation import expect
from gpuwaste.slurm.formats.gpu_positions import GresOnNode
from gpuwaste.slurm.site.cluster_model import Partition

ALICE, BOB, OPER = 1001, 1002, 1004
PATH = "/v1/plan"
HOUR = {"partition": "gpu", "cpus": 1, "nodes": 1, "time_limit_s": 3600}


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Compile the loops where nothing on disk has them: half a minute of CPU, in which a client would give up."""
    assert expect(small_queue([[4]]), [exactly([4], 100, 60)])[0] is not None


@pytest.fixture
def queue(hub: Rig) -> Rig:
    """Fill gpu1 and gpu2 with bob's jobs that end within the half hour; alice and bob wait."""
    now = hub.clock.utc_s()
    shift = now - NOW
    two = {"node_list": "gpu2", "nodes": {"gpu2": GresOnNode(gpus=4)}}
    jobs = [job(1, "RUNNING"), job(2, "RUNNING", **two), job(7, user="alice", priority=50), job(8, reason="Priority")]
    hub.slurm.node_list = NODE_LIST
    hub.slurm.partition_list = [Partition("gpu", ("gpu1", "gpu2"), default=True, state="UP"), Partition("big", ("h1",))]
    hub.slurm.running = [
        replace(one, submit=(one.submit or 0) + shift, start=None if one.start is None else one.start + shift)
        for one in jobs
    ]
    return hub


def ask(hub: Rig, uid: int, *requests: dict[str, Any]) -> Answer:
    """Ask as a user."""
    body = json.dumps({"requests": requests}).encode()
    return hub.send("POST", PATH, body, {"Authorization": hub.credential(uid, "POST", PATH, body)})


def test_what_is_free_starts_now_and_what_is_not_later(queue: Rig) -> None:
    """h1 is free; the a100 are held; a type that gpu does not have starts never. Ends are after starts."""
    answer = ask(
        queue,
        ALICE,
        {**HOUR, "partition": "big", "gpus": 2},
        {**HOUR, "gpus": 2},
        {**HOUR, "gpus": 2, "gpu_type": "h100"},
    )
    assert answer.status == 200, answer.body
    free, held, never = answer.json["expected"]
    at = answer.json["at"]
    assert free["start"]["p90"] == at
    assert at < held["start"]["p50"] <= at + 7200
    assert held["start"]["p50"] < held["end"]["p50"]
    assert never is None
    assert (answer.json["running"], answer.json["waiting"]) == (2, 2)


def test_the_answer_names_nobody_and_only_own_requests_are_answered(queue: Rig) -> None:
    """Neither a user nor a job's id is in it; a request in another's name is not found, but for an operator."""
    answer = ask(queue, ALICE, {**HOUR, "gpus": 1})
    assert b"bob" not in answer.body
    assert set(answer.json) == {"at", "expected", "running", "waiting", "place", "reason", "state"}
    assert ask(queue, ALICE, {**HOUR, "user": "bob"}).status == 404
    assert ask(queue, OPER, {**HOUR, "user": "bob", "gpus": 1}).status == 200


def test_slurmctld_is_asked_once_for_all(queue: Rig) -> None:
    """Ten users in one moment cost the three RPCs of one, and those for limits and reservations."""
    before = sum(queue.slurm.rpcs.values())
    for uid in (ALICE, BOB) * 5:
        assert ask(queue, uid, {**HOUR, "gpus": 1}).status == 200
    assert sum(queue.slurm.rpcs.values()) - before <= 8  # the site counts as one; and what the hub asks for roles


def test_a_waiting_job_has_its_place(queue: Rig) -> None:
    """Bob's job is before alice's; bob may not ask about hers, and a job that runs has no start to expect."""
    found = queue.get(ALICE, f"{PATH}?job=7").json
    assert (found["place"], found["state"]) == (1, "PENDING")
    assert found["expected"][0]["start"]["p50"] >= found["at"]
    assert queue.get(BOB, f"{PATH}?job=7").status == 404
    assert queue.get(BOB, f"{PATH}?job=1").json["expected"] == [None]
    for odd in ("9", "x", "7%27"):
        assert queue.get(ALICE, f"{PATH}?job={odd}").status == 404


def test_slurm_that_is_silent_is_later(queue: Rig) -> None:
    """The hub has no queue: 503 with a time to come back, and the reason."""
    queue.slurm.failure = "scontrol: no answer"
    answer = ask(queue, ALICE, {**HOUR, "gpus": 1})
    assert answer.status == 503
    assert "the queue cannot be read: scontrol: no answer" in answer.json["error"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"requests": 1}', b'{"requests": [{"gpus": -1}]}', b"\xff"])
def test_a_body_that_is_none_is_refused(queue: Rig, body: bytes) -> None:
    """One line that says what is wrong, as for predictions."""
    answer = queue.send("POST", PATH, body, {"Authorization": queue.credential(ALICE, "POST", PATH, body)})
    assert answer.status == 400
    assert answer.json["error"].startswith("the body")


def test_the_client_asks_for_a_plan(queue: Rig, tmp_path: Path) -> None:
    """What `gpuwaste plan` uses: requests in, expectations out, over the hub's own socket."""
    del tmp_path
    client = HubClient(f"unix:{queue.socket}")
    found = client.expect([{**HOUR, "gpus": 1}])
    assert len(found["expected"]) == 1


def test_who_does_not_ask_pays_nothing(queue: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a question, and a day after the last one, the hub neither asks Slurm nor loads the simulator."""
    expectations, before = queue.hub.get(Expectations), dict(queue.slurm.rpcs)
    assert (expectations.step(), queue.slurm.rpcs) == (None, before)
    assert ask(queue, ALICE, {**HOUR, "gpus": 1}).status == 200
    assert expectations.step() == LEARN_S
    monkeypatch.setattr(hub_expectations, "ASKED_S", -1)
    assert expectations.step() is None


def test_learning_goes_on_after_slurm_was_silent(queue: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """The hub's own step says once that slurmctld does not answer, and learns again when it does."""
    expectations = queue.hub.get(Expectations)
    queue.slurm.failure = "scontrol: no answer"
    assert ask(queue, ALICE, {**HOUR, "gpus": 1}).status == 503
    assert [expectations.step(), expectations.step()] == [LEARN_S, LEARN_S]
    assert caplog.text.count("cannot learn from the queue") == 1
    queue.slurm.failure = ""
    assert expectations.step() == LEARN_S
    assert ask(queue, ALICE, {**HOUR, "gpus": 1}).json["expected"][0]["source"].startswith("simulated, corrected")


def record(hub: Rig, uid: int, **more: Any) -> Answer:
    """Record a plan as a user."""
    body = json.dumps({"jobs": [7], "candidate": 2, "title": "1 GPU", **more}).encode()
    return hub.send(
        "POST", f"{PATH}/submitted", body, {"Authorization": hub.credential(uid, "POST", f"{PATH}/submitted", body)}
    )


def test_a_submitted_plan_is_the_verdict_of_its_user_s_job(queue: Rig) -> None:
    """Once for a job; in the list of verdicts with the interval; starts before the submission are the submission's."""
    at = queue.clock.utc_s()
    start = {"p10": at - 100, "p50": at + 60, "p90": at + 600}
    answer = record(queue, ALICE, start=start, end={name: value + 3600 for name, value in start.items()})
    assert (answer.status, answer.json["jobs"]) == (200, [7]), answer.body
    assert record(queue, ALICE).json["jobs"] == []
    (row,) = queue.get(OPER, "/v1/verdicts").json["verdicts"]
    assert (row["op"], row["user"], row["run_job_id"], row["policy"]) == ("plan", "alice", 7, "gpuwaste plan")
    begin = row["quantiles"]["start"]
    assert at <= begin["0.1"] <= queue.clock.utc_s()
    assert (begin["0.5"], begin["0.9"]) == (at + 60, at + 600)
    assert "candidate 2 of the plan: 1 GPU" in row["lines"][0]
    (own,) = queue.get(ALICE, "/v1/verdicts").json["verdicts"]
    assert own["start_within"] is None
    assert queue.get(BOB, "/v1/verdicts").json["verdicts"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobs": []},
        {"jobs": [0]},
        {"jobs": list(range(1, 90))},
        {"candidate": "x"},
        {"title": "x" * 5000},
        {"start": {"p10": 5, "p50": 4, "p90": 6}},
        {"start": {"p10": 5, "p50": 6, "p90": 1 << 62}},
    ],
)
def test_a_plan_that_is_none_is_not_recorded(queue: Rig, wrong: dict[str, Any]) -> None:
    """Bad fields and instants that cannot be are refused with 400 and one line."""
    answer = record(queue, ALICE, **wrong)
    assert answer.status == 400
    assert "\n" not in answer.json["error"]
    assert queue.get(OPER, "/v1/verdicts").json["verdicts"] == []


def test_the_table_of_waits_is_for_advisors_and_kept_a_minute(queue: Rig) -> None:
    """Free h100s wait for nothing, held a100s wait; users are refused; slurmctld is not asked again within a minute."""
    assert queue.get(ALICE, f"{PATH}/waits").status == 403
    answer = queue.get(OPER, f"{PATH}/waits")
    assert answer.status == 200, answer.body
    waits = {(row["partition"], row["gpu_type"], row["gpus"], row["limit_s"]): row for row in answer.json["rows"]}
    assert waits["big", "", 1, 3600]["p90"] == 0
    held = waits["gpu", "a100", 2, 3600]
    assert 0 < held["p50"] <= held["p90"]
    assert ("gpu", "h100", 1, 3600) not in waits
    before = queue.slurm.rpcs.copy()
    assert queue.get(OPER, f"{PATH}/waits").json == answer.json
    assert queue.slurm.rpcs["scontrol"] == before["scontrol"]

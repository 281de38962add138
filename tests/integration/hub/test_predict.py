"""GET and POST /v1/predict over real HTTP: who may ask what, what answers, and a model that changes under it."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.integration.hub.bundles import promote
from tests.integration.hub.rig import Answer, Rig

from gpuwaste.advice import live as live_module
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.core.errors import NoDataError
from gpuwaste.core.underuse import UnderUse
from gpuwaste.hub.hub_ports import ServiceLimits
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.run_store import set_partitions, upsert_jobs
from gpuwaste.net.health_types import PredictionHealth
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.snapshot_tar import read_tar
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.testing.hub_rows import AGENT_UID

ALICE, BOB, CAROL, OPER = 1001, 1002, 1003, 1004
PATH = "/v1/predict"
NOW = 1_700_000_000


def ended(job: int, user: str = "alice", state: str = "FAILED", **more: Any) -> JobRecord:
    """Return a run of a minute."""
    values: dict[str, Any] = {
        "cluster": "gw", "job_id": job, "submit": NOW + 100 * job, "printed_id": str(job), "user": user,
        "account": "proj1", "partition": "gpu", "name": "train", "time_limit_s": 3600,
        "req_tres": "cpu=4,mem=8G,node=1",
        "start": NOW + 100 * job + 5, "end": NOW + 100 * job + 65, "elapsed_s": 60, "state": state,
    }  # fmt: skip
    return JobRecord(**{**values, **more})


@pytest.fixture
def ready(hub: Rig) -> Rig:
    """Return a hub that has read its history."""
    return with_history(hub)


@pytest.fixture(scope="module")
def shared_ready(shared_hub: Rig) -> Rig:
    """Return one for the tests that change nothing in it."""
    return with_history(shared_hub)


def with_history(hub: Rig) -> Rig:
    """Have a hub read its history: five of alice's jobs have failed, four of bob's ran well."""
    upsert_jobs(hub.store, [*(ended(n) for n in range(1, 6)), *(ended(n, "bob", "COMPLETED") for n in range(6, 10))])
    hub.hub.get(Predictions).step()
    return hub


def ask(hub: Rig, uid: int, *requests: dict[str, Any]) -> Answer:
    return send(hub, uid, json.dumps({"requests": requests}).encode())


def send(hub: Rig, uid: int, body: bytes) -> Answer:
    return hub.send("POST", PATH, body, {"Authorization": hub.credential(uid, "POST", PATH, body)})


def failure(answer: Answer) -> dict[str, Any]:
    """Return what is said of failure for the first request."""
    assert answer.status == 200, answer.body
    return next(t for t in answer.json["predictions"][0]["targets"] if t["target"] == "failure")


def seen(answer: Answer) -> tuple[int, bytes]:
    return answer.status, answer.body


def test_until_the_history_is_read_the_answer_is_later(hub: Rig) -> None:
    """The hub takes everything else at once; a prediction asks to come back, and then is there."""
    answer = ask(hub, ALICE, {"name": "train"})
    assert (answer.status, answer.headers["retry-after"]) == (503, "10")
    assert hub.hub.get(Predictions).health().state == "starting"
    hub.hub.get(Predictions).step()
    assert ask(hub, ALICE, {"name": "train"}).status == 200
    assert hub.hub.get(Predictions).health().state == "ready"


def test_the_callers_own_history_speaks(ready: Rig) -> None:
    """Without a name the caller is meant; alice's jobs failed and bob's did not, and each is told his own."""
    mine, his = (failure(ask(ready, uid, {"name": "train", "partition": "gpu"})) for uid in (ALICE, BOB))
    assert (mine["source"], mine["basis"] >= 5) == ("history", True)
    assert mine["p"] > his["p"]
    both = ask(ready, ALICE, {"name": "train"}, {"name": "other", "user": "alice", "gpus": 4})
    assert [p["request"]["gpus"] for p in both.json["predictions"]] == [0, 4]
    assert all(p["request"]["user"] == "alice" for p in both.json["predictions"])
    assert any("no model" in note for note in both.json["predictions"][0]["notes"])


def test_a_submission_in_the_past_is_now(ready: Rig) -> None:
    """What was known at another moment is not given: a time that has passed is taken as now, a later one is kept."""
    now = ready.clock.utc_s()
    past, later = ask(ready, ALICE, {"submit": NOW}, {"submit": now + 9999}).json["predictions"]
    assert past["request"]["submit"] >= now
    assert later["request"]["submit"] == now + 9999


def test_others_are_told_nothing(ready: Rig) -> None:
    """A user who exists, one who does not, and a job of somebody else all answer as a job that does not exist."""
    nothing = seen(ready.get(BOB, f"{PATH}?job=4711"))
    assert nothing[0] == 404
    assert seen(ask(ready, BOB, {"user": "alice"})) == nothing
    assert seen(ask(ready, BOB, {"user": "bob"}, {"user": "nobody-at-all"})) == nothing
    assert seen(ask(ready, CAROL, {"user": "alice"})) == nothing
    assert seen(ask(ready, AGENT_UID, {"user": "alice"})) == nothing
    for job in ("1", "no-id", "1_1", "99999999999", "%00"):
        assert seen(ready.get(BOB, f"{PATH}?job={job}")) == nothing, job
    assert seen(ready.get(CAROL, f"{PATH}?job=1")) == nothing
    assert ready.send("POST", PATH, b"{}").status == 401
    assert ready.send("GET", f"{PATH}?job=1").status == 401


def test_an_operator_asks_for_anybody(ready: Rig) -> None:
    """An operator may name a user and a job of his."""
    assert failure(ask(ready, OPER, {"user": "alice", "name": "train"}))["basis"] >= 5
    assert ready.get(OPER, f"{PATH}?job=1").json["predictions"][0]["request"]["user"] == "alice"


def test_a_credential_is_for_one_body(ready: Rig) -> None:
    """A credential made for one request asks no other, and none twice."""
    body = b'{"requests":[{"name":"a"}]}'
    credential = ready.credential(ALICE, "POST", PATH, body)
    assert ready.send("POST", PATH, body.replace(b"a", b"b"), {"Authorization": credential}).status == 401
    fresh = ready.credential(ALICE, "POST", PATH, body)
    assert ready.send("POST", PATH, body, {"Authorization": fresh}).status == 200
    assert ready.send("POST", PATH, body, {"Authorization": fresh}).status == 401


def test_a_job_is_asked_by_its_request_alone(ready: Rig) -> None:
    """Of a job that Slurm has, whatever became of it, the request is taken, as if it were submitted now."""
    waits = ended(20, start=None, end=None, elapsed_s=None, state="PENDING", printed_id="20")
    task = ended(31, array_job_id=30, array_task_id=1, printed_id="30_1")
    parts = [
        ended(40 + n, het_job_id=40, het_offset=n, printed_id=f"40+{n}", submit=NOW, name=f"part{n}") for n in (0, 1)
    ]
    again = ended(1, submit=NOW + 9000, start=NOW + 9001, end=NOW + 9002, name="requeued")
    upsert_jobs(ready.store, [waits, task, *parts, again])
    asked = {}
    for job in ("1", "20", "30_1", "30", "40", "40%2B1"):
        answer = ready.get(ALICE, f"{PATH}?job={job}")
        assert answer.status == 200, job
        asked[job] = [p["request"] for p in answer.json["predictions"]]
        assert "as if" in answer.json["predictions"][0]["notes"][-1]
    assert {job: [r["name"] for r in found] for job, found in asked.items()} == {
        "1": ["requeued"], "20": ["train"], "30_1": ["train"], "30": ["train"],
        "40": ["part0", "part1"], "40%2B1": ["part1"],
    }  # fmt: skip
    request = asked["20"][0]
    assert (request["cpus"], request["time_limit_s"], request["mem_b"]) == (4, 3600, 8 << 30)
    assert request["submit"] > NOW + 10**6


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"{}", b"null", b'{"requests":[]}', b'{"requests":{}}', b'{"requests":[1]}', b"\xff\xfe",
        b'{"requests":[{"nmae":"x"}]}', b'{"requests":[{"gpus":"4"}]}', b'{"requests":[{"gpus":-1}]}',
        b'{"requests":[{"gpus":true}]}', b'{"requests":[{"time_limit_s":1e400}]}',
        b'{"requests":[{"time_limit_s":NaN}]}',
        b'{"requests":[{"name":7}]}', b'{"requests":[{"is_array":1}]}', b'{"requests":[{}],"x":1}',
        b'{"requests":[{"cpus":99999999999999999999999999}]}', b"[" * 100_000,
        b'{"requests":[' + b"{}," * 64 + b"{}]}", b'{"requests":[{"name":"' + b"x" * 5000 + b'"}]}',
    ],
)  # fmt: skip
def test_a_body_that_is_no_question_is_refused(shared_ready: Rig, body: bytes) -> None:
    """Anything but the described object gets 400 and one line, and is no defect."""
    answer = send(shared_ready, ALICE, body)
    assert answer.status == 400, answer.body
    assert "\n" not in answer.json["error"]
    assert set(answer.json) == {"error"}


def test_a_body_that_is_too_large_is_not_read(ready: Rig) -> None:
    """More than the limit is refused before it is looked at."""
    size = str(ServiceLimits().max_body_bytes + 1)
    headers = {"Authorization": ready.credential(ALICE, "POST", PATH), "Content-Length": size}
    assert ready.send("POST", PATH, headers=headers).status == 413


def test_odd_requests_are_answered(ready: Rig) -> None:
    """Every value that the form allows, absurd ones too, gets a prediction of finite numbers."""
    most = 2**53
    odd = {
        "gpus": most,
        "cpus": most,
        "mem_b": most,
        "nodes": most,
        "time_limit_s": most,
        "submit": most,
        "name": "\U0001f600\n'",
    }
    answer = ask(
        ready, ALICE, odd, {"time_limit_s": 0, "gpus": 0, "cpus": 0, "mem_b": 0}, {"script": "#!/bin/sh\n" * 9}
    )
    assert answer.status == 200, answer.body
    assert b"NaN" not in answer.body
    assert b"Infinity" not in answer.body


def test_what_happens_is_followed(ready: Rig) -> None:
    """Jobs that end after the start are known at the next step, and counted in the health's event."""
    before = failure(ask(ready, BOB, {"name": "train"}))["basis"]
    upsert_jobs(ready.store, [ended(n, "bob") for n in range(50, 54)])
    ready.hub.get(Predictions).step()
    assert failure(ask(ready, BOB, {"name": "train"}))["basis"] > before
    assert ready.hub.get(Predictions).health().event == ready.store.counts()["last_event"]


def test_far_behind_the_history_is_replayed(ready: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an import of years the state is made anew in the order of time, and goes on from there."""
    monkeypatch.setattr(live_module, "FAR_BEHIND", 10)
    upsert_jobs(ready.store, [ended(n, "bob") for n in range(50, 90)])
    ready.hub.get(Predictions).step()
    said = failure(ask(ready, BOB, {"name": "train"}))
    assert said["p"] > 0.5  # his last jobs failed
    assert ready.hub.get(Predictions).health().event == ready.store.counts()["last_event"]


def test_a_new_champion_is_used_and_a_corrupt_one_is_not(ready: Rig, tmp_path: Path) -> None:
    """The link decides; a bundle that cannot be loaded leaves the one before, and health and metrics say so."""
    models, predictions = tmp_path / "models", ready.hub.get(Predictions)
    first = promote(models, "first", 0.25)
    predictions.step()
    said = failure(ask(ready, ALICE, {"name": "train"}))
    assert (said["source"], said["p"], said["basis"]) == ("site model", pytest.approx(0.25), 100)
    second = promote(models, "second", 0.75)
    (models / "second" / "failure.onnx").write_bytes(b"garbage")
    predictions.step()
    health = predictions.health()
    assert (health.model, health.model_hash, health.state) == ("first", first, "ready")
    assert "failure.onnx" in health.error
    assert failure(ask(ready, ALICE, {"name": "train"}))["p"] == pytest.approx(0.25)
    third = promote(models, "third", 0.875)
    predictions.step()
    health = PredictionHealth(state="ready", model="third", model_hash=third, created=NOW)
    assert replace(predictions.health(), event=None) == health
    document = ask(ready, ALICE, {"name": "train"}).json["predictions"][0]
    assert (document["model"], document["model_hash"]) == ("third", third)
    assert second not in {first, third}
    assert b"gpuwaste_hub_predictions_total 3.0" in ready.metrics.text()


def test_a_run_learns_from_the_models_errors(ready: Rig, tmp_path: Path) -> None:
    """Jobs submitted under a champion are scored, and their ends move its corrections."""
    promote(tmp_path / "models", "first", 0.25)
    predictions = ready.hub.get(Predictions)
    predictions.step()
    upsert_jobs(ready.store, [ended(n, "bob") for n in range(50, 58)])
    predictions.step()
    assert known(predictions)[1] == 8


def test_a_restart_goes_on(ready: Rig, tmp_path: Path) -> None:
    """What was known at the end of one hub is what the next one begins with, corrections included."""
    promote(tmp_path / "models", "first", 0.25)
    predictions = ready.hub.get(Predictions)
    predictions.step()
    upsert_jobs(ready.store, [ended(n, "bob") for n in range(50, 58)])
    predictions.step()
    seq, learnt = known(predictions)
    assert learnt == 8
    restart(predictions)
    upsert_jobs(ready.store, [ended(n, "bob") for n in range(60, 62)])
    predictions.step()
    assert known(predictions) == (seq, 8)
    predictions.step()
    assert known(predictions) == (seq + 4, 10)


def test_another_rule_of_under_use_counts_the_history_anew(
    ready: Rig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The running hub replays, as does one that starts; a model of another rule goes on and is named once."""
    promote(tmp_path / "models", "gpus", 0.25, "gpu_underused")
    predictions = ready.hub.get(Predictions)
    predictions.step()
    assert predictions.health().note == ""
    for below_pct in (20.0, 30.0):
        ready.store.under_use = UnderUse(below_pct=below_pct)
        caplog.clear()
        predictions.step()
        predictions.step()
        assert rule(predictions) == ready.store.under_use
        note = f"site's rule is mean below {below_pct:g} %"
        assert note in predictions.health().note
        assert sum(note in record.getMessage() for record in caplog.records) == 1
        assert failure(ask(ready, ALICE, {"name": "train"}))["basis"] >= 5
        restart(predictions)
        ready.store.under_use = UnderUse(below_pct=below_pct + 1)
        predictions.step()
        assert rule(predictions) == ready.store.under_use


def rule(predictions: Predictions) -> UnderUse:
    """Return the rule by which the history that a booting advisor would get was counted."""
    with predictions.snapshot() as tar, tempfile.TemporaryDirectory() as folder:
        read_tar(tar, Path(folder) / "history")
        return Follower.load(Path(folder) / "history", "gw", HistoryState.load).state.under_use


def known(predictions: Predictions) -> tuple[int, int]:
    """Return the last event that is known, and how many ends the corrections have learnt from."""
    live = predictions._live
    assert live is not None
    assert live.champion.rolling is not None
    return live.seq, live.champion.rolling.seen("failure")


def restart(predictions: Predictions) -> None:
    """Save, and forget all, as between two hubs."""
    assert predictions._live is not None
    predictions._live.save()
    predictions._live = None


def test_a_broken_saved_state_is_replayed(ready: Rig, tmp_path: Path) -> None:
    """Garbage where the state was saved costs a replay, and nothing else."""
    predictions = ready.hub.get(Predictions)
    restart(predictions)
    (tmp_path / "history" / "state").write_bytes(b"garbage")
    predictions.step()
    assert failure(ask(ready, ALICE, {"name": "train"}))["basis"] >= 5


def test_the_thread_ends_and_saves(ready: Rig, tmp_path: Path) -> None:
    """The thread stops when it is told to, and leaves the state for the next start."""
    worker = ready.hub.get(Predictions).worker
    worker.start()
    worker.stop(20)
    assert not worker.alive
    assert (tmp_path / "history" / "place.npz").exists()


def test_the_client_asks_through_a_unix_socket(ready: Rig) -> None:
    """HubClient posts a question and reads the documents; the socket tells who asks, and a foreign job is no data."""
    client = HubClient(f"unix:{ready.socket}")
    assert client.predict([{"name": "train"}, {"gpus": 1}])[1]["request"]["gpus"] == 1
    with pytest.raises(NoDataError):
        client.predict_job("1")


WITHOUT = """
import sys
sys.modules["numpy"] = None
from pathlib import Path
from gpuwaste.core.clock import SystemClock
from gpuwaste.hub import hub
list(hub._kinds())
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.core.refusal import Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.store.hub.hub_store import HubStore
clock = SystemClock()
store = HubStore.open(":memory:", clock)
places = {"models_dir": Path("/x"), "state_dir": Path("/x")}
predictions = Predictions(store, lambda: "gw", clock=clock, **places)
assert predictions.step() is None
print(predictions.health().state)
try:
    predictions.for_requests(Scope("alice"), b'{"requests":[{}]}')
except Refusal as refusal:
    print(refusal.status, refusal)
"""


def test_without_the_extra_the_hub_runs() -> None:
    """Without NumPy the hub's parts load, the thread has nothing to do, and the answer says what to install."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "not installed"
    assert lines[1].startswith("501 ")
    assert "[predict]" in lines[1]


_WARNING = '[policy]\nname = "w"\nmode = "{}"\n[targets.failure]\nwarn = 0.8\n'


def _said(hub: Rig, uid: int, **request: Any) -> dict[str, Any]:
    answer = ask(hub, uid, {"user": "alice", "name": "train", **request})
    assert answer.status == 200, answer.body
    policy: dict[str, Any] = answer.json["predictions"][0]["policy"]
    return policy


def _use(hub: Rig, text: str) -> None:
    """Put one policy in the hub's directory and let the hub see it."""
    folder = hub.directory / "policies.d"
    folder.mkdir(exist_ok=True)
    (folder / "a.toml").write_text(text)
    hub.hub.get(Predictions).step()


def test_shadow_tells_operators_alone(ready: Rig) -> None:
    """A fresh hub judges by the built-in policy: an operator sees what would be done, the user nothing of it."""
    hers = _said(ready, ALICE)
    assert hers == {"policy": "", "mode": "", "action": "pass", "would_be": "pass", "held": "", "lines": []}
    seen = _said(ready, OPER)
    told = ("policy", "mode", "action", "would_be", "held")
    assert [seen[key] for key in told] == ["default", "shadow", "pass", "warn", "shadow"]
    assert "5 of your last 5 jobs named train failed" in " ".join(seen["lines"])


def test_a_user_is_told_what_sbatch_would_print(ready: Rig) -> None:
    """Under a policy that warns: the same lines; bob, whose jobs ran well, is told nothing."""
    _use(ready, _WARNING.format("warn"))
    hers = _said(ready, ALICE)
    assert (hers["policy"], hers["action"], len(hers["lines"])) == ("w", "warn", 3)
    his = ask(ready, BOB, {"name": "train"}).json["predictions"][0]["policy"]
    assert (his["action"], his["lines"]) == ("pass", [])


def test_policies_are_read_again_and_bad_ones_change_nothing(ready: Rig) -> None:
    """A file that changes is used at the next step; one that is bad leaves the last in use, and health says why."""
    _use(ready, _WARNING.format("annotate"))
    assert _said(ready, ALICE)["action"] == "annotate"
    _use(ready, _WARNING.format("wrn"))
    assert _said(ready, ALICE)["action"] == "annotate"
    assert "'wrn' is not a mode" in ready.hub.get(Predictions).health().error
    _use(ready, _WARNING.format("warn"))
    assert _said(ready, ALICE)["action"] == "warn"
    assert ready.hub.get(Predictions).health().error == ""


def test_where_scripts_are_not_known_failures_only_warn(ready: Rig) -> None:
    """No verdict has told the scripts of these failures, so the policy that rejects them warns."""
    _use(ready, _WARNING.format("reject").replace("warn = 0.8", "reject = 0.8"))
    answer = ask(ready, ALICE, {"name": "train", "script": "#!/bin/sh\nfalse\n"})
    (prediction,) = answer.json["predictions"]
    assert (prediction["policy"]["action"], prediction["facts"]["script"]) == ("warn", "unknown")


def test_whole_node_partitions_are_known(ready: Rig) -> None:
    """What the importer stored of the partitions is used: no advice on GPUs where a job holds its nodes alone."""
    set_partitions(ready.store, "gw", {"whole": True, "gpu": False})
    ready.hub.get(Predictions).step()
    answer = ask(ready, ALICE, {"partition": "whole"}, {"partition": "gpu,whole"}, {"partition": "gpu"})
    assert [p["facts"]["whole_node"] for p in answer.json["predictions"]] == [True, True, False]


def test_a_script_beyond_the_budget_of_a_question_is_not_read(ready: Rig) -> None:
    """Where reading has used up its CPU a job is predicted without its script, says so, and no policy judges it."""
    ready.hub.get(Predictions)._reading_s = 0.0
    answer = ask(ready, OPER, {"user": "alice", "name": "train", "script": "#!/bin/sh\n# not read yet\n"})
    (found,) = answer.json["predictions"]
    assert [note for note in found["notes"] if "not read" in note] != []
    assert (found["policy"]["action"], found["policy"]["would_be"]) == ("pass", "pass")
    assert failure(answer)["basis"] >= 5


def test_hostile_texts_cost_the_hub_little_cpu(ready: Rig) -> None:
    """Questions of the largest size, of newlines, comments or near-commands, take seconds of CPU at most together."""
    before_s = time.process_time()
    for unit in ("\n", " \n", "#\n", "mpirunx ", "\\\\", "[", "=", "|| "):
        body = json.dumps({"requests": [{"name": (unit * 4000)[:4096], "script": unit * 4000} for _ in range(8)]})
        ask_long = json.dumps({"requests": [{"script": unit * (500_000 // len(json.dumps(unit)))}]})
        for text in (body, ask_long):
            assert send(ready, ALICE, text.encode()).status == 200
    assert time.process_time() - before_s < 30.0

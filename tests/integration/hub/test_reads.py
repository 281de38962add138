"""GET routes over real HTTP: everybody gets what is his to see, and the same bytes for all else."""

import contextlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Answer, Rig

from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.core.refusal import Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import AGENT_UID, HOUR, batch, hour, record

ALICE, BOB, CAROL, OPER = 1001, 1002, 1003, 1004


@pytest.fixture
def filled(hub: Rig) -> Rig:
    """Job 7 is alice's in proj1, job 8 bob's in proj2."""
    upsert_jobs(hub.store, [record(7, "alice"), record(8, "bob", "proj2")])
    assert hub.post(batch(hour(7), hour(8, gpu_uuid="GPU-b"))).status == 200
    return hub


def seen(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """Return all that a client can see of an answer."""
    return answer.status, answer.headers, answer.body


def test_a_user_reads_his_own_job_and_report(filled: Rig) -> None:
    """Alice sees her job with its devices, and her report with its totals."""
    job = filled.get(ALICE, "/v1/jobs/7").json
    assert (job["document"], job["runs"][0]["user"], len(job["runs"][0]["devices"])) == ("job", "alice", 1)
    report = filled.get(ALICE, f"/v1/report?user=alice&start={HOUR - 9}&end={HOUR + 7200}").json
    assert (report["job_count"], report["totals"]["gpu_s"]) == (1, 1800)


def test_a_foreign_job_looks_like_one_that_does_not_exist(filled: Rig) -> None:
    """Bob's question for alice's job, in any way, gets byte for byte the answer for what does not exist."""
    nothing = seen(filled.get(BOB, "/v1/jobs/4711"))
    assert nothing[0] == 404
    for target in (
        "/v1/jobs/7",
        "/v1/jobs/7_1",
        "/v1/jobs/x%27%20OR%201",
        "/v1/jobs/7?user=alice",
        "/v1/jobs/7/curves",
        "/v1/jobs/7/curves?node=gpu1",
        "/v1/jobs/8/curves?node=gpu2",
        "/v1/jobs/4711/curves",
        "/v1/report?user=alice",
        "/v1/report?user=nobody",
        "/v1/report?account=proj1",
        "/v1/report?account=none",
        "/v1/report?cluster=1",
        "/v1/report?cluster=gw",
        "/v1/map?node=gpu1&job=7",
        "/v1/map?node=gpu1&job=4711",
    ):
        assert seen(filled.get(BOB, target)) == nothing, target
    assert filled.get(BOB, "/v1/jobs/8").status == 200


def test_another_s_view_never_widens_one_s_own(filled: Rig) -> None:
    """Bob and the coordinator who ask as alice, or as an operator, get the answer for what does not exist."""
    nothing = seen(filled.get(BOB, "/v1/jobs/4711"))
    for uid in (BOB, CAROL, AGENT_UID):
        for owner in ("alice", "oper", "root", "nobody", "gpuwaste"):
            for job in (7, 8):
                assert seen(filled.get(uid, f"/v1/jobs/{job}?owner={owner}")) == nothing
    assert filled.get(BOB, "/v1/jobs/8?owner=bob").status == 200
    assert filled.get(OPER, "/v1/jobs/7?owner=alice").status == 200
    assert seen(filled.get(OPER, "/v1/jobs/7?owner=bob")) == nothing
    assert filled.get(BOB, "/v1/jobs/8?owner=").status == 400


def test_one_run_of_a_job_id_can_be_asked_for(hub: Rig) -> None:
    """Slurm used id 7 again, then requeued it: the run that started then, or the last one that has just ended."""
    again = HOUR + 7200
    runs = (
        record(7, "bob"),
        record(7, "alice", submit=again, start=again, end=again + 60, state="REQUEUED"),
        record(7, "alice", submit=again + 60, start=again + 90, end=again + 600),
    )
    upsert_jobs(hub.store, runs)

    def starts(question: str) -> list[int]:
        answer = hub.get(OPER, f"/v1/jobs/7?{question}")
        return [run["start"] for run in answer.json["runs"]] if answer.status == 200 else []

    assert starts("owner=alice") == [again, again + 90]
    assert starts(f"start={again}") == [again]
    assert starts(f"ended_since={again + 500}") == [again + 90]
    assert starts(f"ended_since={HOUR}") == [again + 90]
    assert starts(f"ended_since={again + 700}") == []
    assert starts("cluster=other") == []
    assert starts(f"owner=bob&start={again}") == []


class AskedStore(HubStore):
    """A store that notes the queries of its readers, and how many rows each gave."""

    asked: tuple[list[tuple[str, int]], ...] = ([],)

    @contextlib.contextmanager
    def reader(self) -> Iterator[Database]:
        with super().reader() as db:
            yield Noting(db, self.asked[0])  # type: ignore[misc]


class Noting:
    """A cursor that notes what it is asked."""

    def __init__(self, db: Database, asked: list[tuple[str, int]]) -> None:
        self._db = db
        self._asked = asked

    def run(self, name: str, parameters: Any = None) -> None:
        self._db.run(name, parameters)
        self._asked.append((name, -1))

    def rows(self, name: str, parameters: Any = None) -> Any:
        rows = self._db.rows(name, parameters)
        self._asked.append((name, len(rows)))
        return rows

    def answer(self, name: str, parameters: Any = None) -> Any:
        answer = self._db.answer(name, parameters)
        self._asked.append((name, len(answer.rows)))
        return answer


@pytest.mark.parametrize("what", ["job", "prediction"])
def test_a_foreign_job_is_no_more_work_than_one_that_does_not_exist(tmp_path: Path, what: str) -> None:
    """The store is asked the same for both and gives no row of either: nothing of somebody else's job is loaded."""
    clock = FakeClock(HOUR + 7200)
    store = AskedStore.open(tmp_path / "hub.duckdb", clock)
    upsert_jobs(store, [record(7, "alice"), record(8, "bob", "proj2"), record(9, "")])
    upsert_hours(store, [hour(7), hour(8)])
    predictions = Predictions(store, lambda: "gw", clock=clock, models_dir=tmp_path, state_dir=tmp_path)
    ask: Any = DocumentQueries(store, LedgerSettings(), clock).job if what == "job" else predictions.for_job

    def work(user: str, printed_id: str) -> list[tuple[str, int]]:
        store.asked[0].clear()
        with pytest.raises(Refusal, match="or not visible to you"):
            ask(Scope(user), printed_id)
        return store.asked[0].copy()

    assert work("bob", "7") == work("bob", "4711") == work("", "9")
    assert max(rows for _, rows in work("bob", "7")) == 0


def test_a_captured_credential_is_of_no_use(filled: Rig) -> None:
    """Alice's credential, used already or made for another question, reads nothing for bob."""
    captured = filled.credential(ALICE, "GET", "/v1/jobs/7")
    assert filled.send("GET", "/v1/jobs/7", headers={"Authorization": captured}).status == 200
    replayed = filled.send("GET", "/v1/jobs/7", headers={"Authorization": captured})
    replayed_missing = filled.send("GET", "/v1/jobs/4711", headers={"Authorization": captured})
    assert seen(replayed) == seen(replayed_missing)
    assert replayed.status == 401
    moved = filled.credential(ALICE, "GET", "/v1/report?user=alice")
    assert filled.send("GET", "/v1/jobs/7", headers={"Authorization": moved}).status == 401


def test_without_a_credential_nothing_is_told(filled: Rig) -> None:
    """Every route with data in it answers 401 to a caller without a credential."""
    for target in ("/v1/report", "/v1/jobs/7", "/v1/jobs/7/curves", "/v1/top", "/v1/history", "/v1/map?node=gpu1"):
        assert filled.send("GET", target).status == 401, target


def test_a_coordinator_reads_his_accounts(filled: Rig) -> None:
    """Carol coordinates proj1: alice's job there is hers to see, bob's in proj2 is not, and nobody is told why."""
    assert filled.get(CAROL, "/v1/jobs/7").status == 200
    nothing = seen(filled.get(CAROL, "/v1/jobs/4711"))
    around = f"start={HOUR - 9}&end={HOUR + 7200}"
    for target in (
        "/v1/jobs/8",
        f"/v1/report?user=bob&{around}",
        f"/v1/report?user=x&{around}",
        "/v1/report?account=proj2",
    ):
        assert seen(filled.get(CAROL, target)) == nothing, target
    assert filled.get(CAROL, f"/v1/report?user=alice&{around}").json["job_count"] == 1
    assert filled.get(CAROL, f"/v1/report?account=proj1&{around}").json["job_count"] == 1


def test_an_operator_reads_everything(filled: Rig) -> None:
    """An operator of Slurm's database sees every job, the whole cluster, and empty reports as such."""
    around = f"start={HOUR - 9}&end={HOUR + 7200}"
    assert filled.get(OPER, "/v1/jobs/8").status == 200
    assert filled.get(OPER, f"/v1/report?cluster=1&{around}").json["job_count"] == 2
    assert filled.get(OPER, f"/v1/report?user=nobody&{around}").json["job_count"] == 0
    assert filled.get(OPER, f"/v1/report?cluster=1&{around}&limit=1").json["jobs_left_out"] == 1


def test_no_answer_has_more_rows_than_the_hub_may_hold(filled: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever limit is asked for, what is beyond the hub's own is counted and left out; sums are whole."""
    monkeypatch.setattr("gpuwaste.ledger.reports.report_reads.MAX_ROWS", 1)
    for limit in ("", "&limit=5"):
        found = filled.get(OPER, f"/v1/report?cluster=1&start={HOUR - 9}&end={HOUR + 7200}{limit}").json
        assert (found["job_count"], len(found["jobs"]), found["jobs_left_out"]) == (2, 1, 1)
        assert len(found["users"]) == 2


def test_top_shows_only_what_the_caller_may_see(hub: Rig) -> None:
    """Of two running jobs each user is shown his own, the operator both, the coordinator his account's."""
    now = hub.clock.utc_s()
    run: dict[str, Any] = {"start": now - 600, "end": None, "elapsed_s": None, "state": "RUNNING", "submit": now - 700}
    upsert_jobs(hub.store, [record(7, "alice", **run), record(8, "bob", "proj2", **run)])

    def users(uid: int) -> list[str]:
        return sorted(job["user"] for job in hub.get(uid, "/v1/top").json["jobs"])

    assert (users(ALICE), users(BOB), users(CAROL), users(OPER)) == (["alice"], ["bob"], ["alice"], ["alice", "bob"])


def test_history_is_for_operators_and_agents(filled: Rig) -> None:
    """Events come in order with their runs, from any point on; an ordinary user gets none."""
    events = filled.get(OPER, "/v1/history?after=0").json
    assert [e["kind"] for e in events["events"]] == ["started", "started", "ended", "ended"]
    assert events["events"][0]["job"]["user"] == "alice"
    later = filled.get(AGENT_UID, f"/v1/history?after={events['next'] - 1}&limit=5").json
    assert [(e["kind"], e["jobid"]) for e in later["events"]] == [("ended", 8)]
    rest = filled.get(OPER, f"/v1/history?after={events['next']}").json
    rule = {"below_pct": 5.0, "min_s": 30.0, "min_coverage": 0.8}
    assert rest == {"events": [], "next": events["next"], "under_use": rule}
    assert filled.get(BOB, "/v1/history").status == 403


@pytest.mark.parametrize(
    "target",
    [
        "/v1/report?user=alice&account=proj1",
        "/v1/report?start=yesterday",
        "/v1/report?start=20&end=10",
        "/v1/report?limit=-1",
        "/v1/report?user=",
        "/v1/map?node=gpu1&job=0",
        "/v1/map?node=gpu1&job=99999999999",
        "/v1/history?limit=0",
    ],
)
def test_a_bad_parameter_is_named(filled: Rig, target: str) -> None:
    """A parameter that cannot be gets 400 and one line of words."""
    answer = filled.get(AGENT_UID if "map" in target else ALICE, target)
    assert (answer.status, "\n" in answer.json["error"]) == (400, False)


def test_unknown_paths_and_methods_are_json(filled: Rig) -> None:
    """What is not served answers in the same form as all else."""
    assert filled.send("GET", "/v2/jobs").json == {"error": "Not Found"}
    assert filled.send("DELETE", "/v1/hours").status == 405


def test_an_unknown_page_is_a_page(filled: Rig) -> None:
    """A browser at an address that nothing has gets words and a link home, and no JSON."""
    found = filled.send("GET", "/dashbord", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (found.status, found.body.count(b"<h1>Not found.</h1>")) == (404, 1)
    assert b'href="/me"' in found.body


def test_the_api_describes_itself(filled: Rig) -> None:
    """/openapi.json names every route and the shapes of their answers."""
    found = filled.send("GET", "/openapi.json").json
    routes = "/v1/hours /v1/report /v1/jobs/{job_id} /v1/top /v1/history /v1/map /v1/health /v1/predict /v1/plan"
    routes += " /v1/history/snapshot /v1/verdicts /v1/verdicts/score /v1/notices /v1/notices/preview"
    routes += " /v1/now /v1/notices/replay /v1/notices/run /v1/notices/wish /v1/backup /v1/backup/file"
    routes += " /v1/plan/submitted /v1/plan/waits /v1/events /v1/events/kinds /v1/events/stream /v1/outlets"
    routes += " /v1/right-sizes /v1/right-sizes/table /v1/appeals /v1/programs/runs /v1/inlets /v1/inlets/{name}"
    routes += " /v1/jobs/{job_id}/curves /v1/views /v1/views/{name} /v1/views/{name}/compare /v1/web/link"
    routes += " /v1/actions /v1/actions/stop /v1/actions/claim /v1/actions/{action_id} /v1/actions/{action_id}/approve"
    routes += " /v1/actions/{action_id}/refuse /v1/actions/{action_id}/step"
    routes += " /v1/appeals/{appeal_id}/reply /v1/keeps /v1/jobs/{job_id}/keep"
    routes += " /v1/rules /v1/rules/look /v1/rules/replay /v1/rules/{name}/restore /v1/models/trial"
    routes += " /v1/jobs/{job_id}/idleness /v1/nodes/{node}/idleness"
    routes += " /v1/effects /v1/effects/split"
    assert set(found["paths"]) == set(routes.split())
    asked = found["paths"]["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(asked["properties"]["requests"]["items"]["properties"]) == {f.name for f in fields(JobRequest)}
    shapes = {
        route["responses"]["200"]["content"]["application/json"]["schema"]["title"]
        for methods in found["paths"].values()
        for route in methods.values()
        if not {"application/x-tar", "text/event-stream"} & route["responses"]["200"]["content"].keys()
    }
    assert shapes == {
        *("AckAnswer", "PredictAnswer", "MapAnswer", "HistoryAnswer", "VerdictsDocument", "ProgramRunsAnswer"),
        *("ScoreDocument", "NoticesDocument", "NoticePreview", "NoticeReplay", "NoticeRun", "NoticeWished"),
        *(
            "BackupAnswer",
            "HealthAnswer",
            "ReportDocument",
            "JobDocument",
            "TopDocument",
            "JobCurves",
            "NowDocument",
            "ExpectAnswer",
        ),
        *("PlansRecorded", "WaitTableAnswer", "EventsAnswer", "CatalogueDocument", "OutletsDocument"),
        *("InletAnswer", "InletsDocument", "RightSizesDocument", "SizeTableAnswer"),
        *("RulesDocument", "LookDocument", "ReplayDocument", "TrialDocument"),
        *("ViewsDocument", "ViewDocument", "ComparisonDocument", "LinkAnswer"),
        *("ActionsDocument", "ActionDocument", "ActionLent", "ActionTaken", "ActionsStopped", "AppealsDocument"),
        *("AppealDocument", "KeepAnswer", "KeepsDocument", "RuleRestored", "IdlenessDocument"),
        *("EffectsDocument", "SplitDocument"),
    }
    event = found["paths"]["/v1/history"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert {"seq", "job", "use", "script"} <= set(event["properties"]["events"]["items"]["properties"])

"""GET /v1/jobs/ID/idleness and /v1/nodes/NAME/idleness over real HTTP: who gets what, signed, and when it is yes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Answer, Rig, running_hub

from gpuwaste.core.codec import convert
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.idleness.accounting_backlog import AccountingBacklog
from gpuwaste.ledger.idleness.idleness_text import idleness_text
from gpuwaste.ledger.idleness.idleness_types import REASONS, IdlenessDocument
from gpuwaste.net.request_signing import ack_digest
from gpuwaste.show.layout import Look
from gpuwaste.show.machine_formats import to_csv
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import GresOnNode
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.clocks import StoppedClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record

ALICE, BOB, CAROL, OPER, STRANGER = 1001, 1002, 1003, 1004, 4242
NOW = HOUR + 2400
REPORTED = NOW - 100
AS_OF = REPORTED - 60  # as long as a batch may have been on its way
OPEN: dict[str, Any] = {"end": None, "elapsed_s": None, "state": "RUNNING", "exit_code": None, "time_limit_s": 86400}


def used(job: int, pct: int = 0, *, until: int = REPORTED, **more: Any) -> Any:
    """Return an hour of a GPU that was at `pct` % from the hour's begin on."""
    span = (until - HOUR) * 1000
    values: dict[str, Any] = {
        "t1_ms": until * 1000, "util_ms": {pct: span}, "last_active_ms": until * 1000 if pct else None,
        "gpu_uuid": f"GPU-{job}", "map_source": "prolog", "confidence": "confirmed",
    }  # fmt: skip
    return hour(job, **{**values, **more})


def in_slurmctld(run: JobRecord, **more: Any) -> RunningJob:
    """Return the job of a run as slurmctld has it."""
    gpus = {name: GresOnNode(gpus=run.gpus or 0) for name in run.nodes.split(",")}
    values = {"array_job_id": run.array_job_id, "array_task_id": run.array_task_id, **more}
    return RunningJob(
        run.job_id, run.printed_id, run.name, run.user, 1001, run.account, run.partition, "", run.state, run.submit,
        run.start, run.end, 0, run.nodes, 1, **{"nodes": gpus, **values},
    )  # fmt: skip


def hold(rig: Rig, *runs: JobRecord) -> None:
    """Let accounting and slurmctld have these runs, and the hub read accounting."""
    rig.slurm.records = list(runs)
    rig.slurm.running = [in_slurmctld(run) for run in runs if run.end is None]
    upsert_jobs(rig.store, runs)
    rig.hub.get(Importer).step()


@pytest.fixture
def idle_hub(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub forty minutes into the hour; alice's job 7 idles on gpu1, bob's job 8 works on gpu2, gpu3 is empty."""
    nodes = [Node(f"gpu{n}", address=f"10.0.0.{n}", gpus={"a100": 1}) for n in (1, 2, 3)]
    slurm = FakeSlurm(
        node_list=nodes,
        levels={"oper": "Operator"},
        account_coordinators={"proj1": frozenset({"carol"})},
        settings={"MinJobAge": "300 sec"},
    )
    with running_hub(tmp_path, slurm, clock=StoppedClock(NOW)) as rig:
        rig.hub.get(ClusterFacts).refresh()
        hold(rig, record(7, "alice", **OPEN), record(8, "bob", "proj2", **{**OPEN, "nodes": "gpu2"}))
        assert rig.post(batch(used(7), sent_us=NOW * 1_000_000)).status == 200
        busy = batch(used(8, 90, node="gpu2"), node="gpu2", sent_us=NOW * 1_000_000)
        assert rig.post(busy, origin="10.0.0.2").status == 200
        yield rig


def asked(rig: Rig, target: str, uid: int = OPER) -> dict[str, Any]:
    """Return the answer to a question."""
    answer = rig.get(uid, target)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def job_answer(rig: Rig, question: str = "for_s=1800", job: str = "7") -> tuple[str, list[str]]:
    """Return the answer about a job, and the reasons."""
    found = asked(rig, f"/v1/jobs/{job}/idleness?{question}")
    return found["answer"], found["reasons"]


def test_an_idle_job_is_yes_with_its_time_and_its_evidence(idle_hub: Rig) -> None:
    """A yes names the run and its GPU, and says from when to when it is true and until when it may be used."""
    found = asked(idle_hub, "/v1/jobs/7/idleness?for_s=1800&nonce=abc")
    assert (found["answer"], found["reasons"], found["about"], found["name"]) == ("yes", [], "job", "7")
    assert (found["since"], found["as_of"], found["idle_s"]) == (HOUR, AS_OF, AS_OF - HOUR)
    assert (found["generated"], found["valid_until"], found["valid_s"]) == (NOW, NOW + 60, 60)
    assert (found["nonce"], found["for_s"], found["max_age_s"]) == ("abc", 1800, 1140)
    assert found["accounting_read"] == found["slurmctld_read"] == NOW
    (run,) = found["runs"]
    assert (run["job_id"], run["start"], run["user"], run["answer"], run["gpus_held"]) == (7, HOUR, "alice", "yes", 1)
    assert run["gpus"] == [
        {
            "node": "gpu1", "gpu_uuid": "GPU-7", "last_active": None, "since": HOUR, "as_of": AS_OF,
            "age_s": NOW - AS_OF, "map_source": "prolog", "confidence": "confirmed", "reasons": [],
        }
    ]  # fmt: skip
    document = convert(found, IdlenessDocument, "an answer")
    assert "YES" in idleness_text(document, Look())
    assert to_csv(document).splitlines()[1].startswith("gw,7,")


def test_the_threshold_is_the_sites_where_the_question_has_none(idle_hub: Rig) -> None:
    """Without for_s half an hour counts; an idle job is no for a longer time; limits out of range are refused."""
    assert asked(idle_hub, "/v1/jobs/7/idleness")["for_s"] == 1800
    assert job_answer(idle_hub, "for_s=3600") == ("no", ["short"])
    assert job_answer(idle_hub, "for_s=1800&max_age_s=120") == ("unknown", ["stale"])
    for bad in ("for_s=59", "for_s=604801", "for_s=x", "max_age_s=59", "nonce=a%20b", f"nonce={'a' * 65}"):
        assert idle_hub.get(OPER, f"/v1/jobs/7/idleness?{bad}").status == 400, bad


def test_what_works_is_no(idle_hub: Rig) -> None:
    """A job whose GPU works is no, as is its node; the text says why."""
    assert job_answer(idle_hub, job="8") == ("no", ["active"])
    assert asked(idle_hub, "/v1/nodes/gpu2/idleness")["answer"] == "no"
    found = convert(asked(idle_hub, "/v1/jobs/8/idleness"), IdlenessDocument, "an answer")
    assert REASONS["active"] in " ".join(idleness_text(found, Look()).split())


def test_a_foreign_job_is_not_found_byte_for_byte(idle_hub: Rig) -> None:
    """Bob gets for alice's job what he gets for none; alice, her coordinator and operators get the answer."""
    foreign, none = idle_hub.get(BOB, "/v1/jobs/7/idleness"), idle_hub.get(BOB, "/v1/jobs/77/idleness")
    assert (foreign.status, foreign.body) == (none.status, none.body) == (404, idle_hub.get(BOB, "/v1/jobs/7").body)
    assert foreign.headers.keys() == none.headers.keys()
    for bad in ("x", "7'", "7_", "%00", "9" * 11):
        assert idle_hub.get(BOB, f"/v1/jobs/{bad}/idleness").body == none.body
    for uid in (ALICE, CAROL, OPER):
        assert asked(idle_hub, "/v1/jobs/7/idleness", uid)["answer"] == "yes"


def test_nodes_are_for_operators_only(idle_hub: Rig) -> None:
    """Users and coordinators get for a node what they get for none, whoever runs there."""
    answers = {
        (one.status, one.body)
        for uid in (ALICE, CAROL, BOB)
        for one in (idle_hub.get(uid, f"/v1/nodes/{name}/idleness") for name in ("gpu1", "gpu9"))
    }
    assert answers == {(404, idle_hub.get(OPER, "/v1/nodes/gpu9/idleness").body)}


def test_a_node_is_idle_with_its_runs_or_without_any(idle_hub: Rig) -> None:
    """gpu1 holds one idle run, gpu3 none: both are yes; a job without GPUs makes it no, one that just began unknown."""
    assert asked(idle_hub, "/v1/nodes/gpu1/idleness?for_s=1800")["reasons"] == ["accounting"], "the queue was not seen"
    idle_hub.slurm.backlog = 3
    idle_hub.hub.get(AccountingBacklog).look()
    assert asked(idle_hub, "/v1/nodes/gpu1/idleness?for_s=1800")["reasons"] == ["accounting"], "slurmdbd is behind"
    idle_hub.slurm.backlog = 0
    idle_hub.hub.get(AccountingBacklog).look()
    found = asked(idle_hub, "/v1/nodes/gpu1/idleness?for_s=1800")
    assert (found["answer"], found["gpus"], found["free_gpus"]) == ("yes", 1, 0)
    assert [run["jobid"] for run in found["runs"]] == ["7"]
    empty = asked(idle_hub, "/v1/nodes/gpu3/idleness?for_s=1800")
    assert (empty["answer"], empty["free_gpus"], empty["runs"], empty["as_of"]) == ("yes", 1, [], NOW)
    began = record(9, "bob", **{**OPEN, "nodes": "gpu3", "start": NOW - 5})
    idle_hub.slurm.running.append(in_slurmctld(began))
    later(idle_hub)
    found = asked(idle_hub, "/v1/nodes/gpu3/idleness?for_s=1800")
    assert (found["answer"], found["reasons"]) == ("unknown", ["mismatch"])
    cpus = record(9, "bob", **{**OPEN, "nodes": "gpu3", "gpus": 0, "alloc_tres": "cpu=4"})
    hold(idle_hub, record(7, "alice", **OPEN), cpus)
    found = asked(idle_hub, "/v1/nodes/gpu3/idleness?for_s=1800")
    assert (found["answer"], found["reasons"]) == ("no", ["no_gpus_held"])


def later(rig: Rig) -> None:
    """Let both clocks go on until slurmctld is queried again, and accounting be read."""
    clock = rig.clock
    assert isinstance(clock, StoppedClock)
    clock.go_on(31)
    rig.hub.get(Importer).step()


def test_slurmctld_has_the_last_word(idle_hub: Rig) -> None:
    """A run that slurmctld has suspended, requeued, ended or on other GPUs is no yes, whatever accounting has."""
    run, running = record(7, "alice", **OPEN), idle_hub.slurm.running
    cases: list[tuple[list[RunningJob], tuple[str, list[str]]]] = [
        ([in_slurmctld(run, suspended_at=NOW - 10)], ("no", ["suspended"])),
        (
            [in_slurmctld(run, nodes={"gpu1": GresOnNode(gpus=1), "gpu2": GresOnNode(gpus=1)})],
            ("unknown", ["placement"]),
        ),
        ([in_slurmctld(record(7, "alice", **{**OPEN, "start": NOW - 20}))], ("no", ["replaced"])),
        ([in_slurmctld(record(7, "alice", **{**OPEN, "state": "COMPLETED"}))], ("no", ["replaced"])),
        ([in_slurmctld(record(7, "alice", **{**OPEN, "state": "COMPLETING"}))], ("unknown", ["state"])),
        ([], ("unknown", ["slurmctld"])),
        (running, ("yes", [])),
    ]
    for jobs, expected in cases:
        idle_hub.slurm.running = jobs
        later(idle_hub)
        assert job_answer(idle_hub) == expected
    idle_hub.slurm.failure = "slurmctld is down"
    later(idle_hub)
    assert job_answer(idle_hub) == ("unknown", ["slurmctld"])


def test_an_array_is_idle_only_as_a_whole(idle_hub: Rig) -> None:
    """Of an array each task must be idle, and none may be pending, in accounting or in slurmctld alone."""
    tasks = [
        record(
            20 + n,
            "alice",
            **{**OPEN, "printed_id": f"20_{n}", "array_job_id": 20, "array_task_id": n},
            nodes=f"gpu{n}",
        )
        for n in (1, 2)
    ]
    hold(idle_hub, *tasks)
    for n in (1, 2):
        body = batch(used(20 + n, node=f"gpu{n}"), node=f"gpu{n}", sent_us=NOW * 1_000_000)
        assert idle_hub.post(body, origin=f"10.0.0.{n}").status == 200
    assert job_answer(idle_hub, job="20") == ("yes", [])
    assert len(asked(idle_hub, "/v1/jobs/20/idleness")["runs"]) == 2
    assert job_answer(idle_hub, job="20_1") == ("yes", [])
    waits = record(20, "alice", printed_id="20_[3-9]", array_job_id=20, start=None, state="PENDING", end=None)
    idle_hub.slurm.running.append(in_slurmctld(waits, nodes={}))
    later(idle_hub)
    assert job_answer(idle_hub, job="20") == ("no", ["pending"])
    assert job_answer(idle_hub, job="20_1") == ("yes", [])
    hold(idle_hub, *tasks, waits)
    later(idle_hub)
    assert job_answer(idle_hub, job="20") == ("no", ["pending"])


@pytest.mark.parametrize(
    ("row", "sent", "reasons"),
    [
        ({"unknown_ms": {"gap": 1}, "t1_ms": REPORTED * 1000 + 1}, 0, ["gap"]),
        ({"share": 0.5}, 0, ["not_reported"]),
        ({"gpu_uuid": "MIG-1"}, 0, ["mig"]),
        ({"gpu_uuid": "missing:gpu1:0"}, 0, ["not_reported"]),
        ({"confidence": "none"}, 0, ["unattributed"]),
        ({}, 61, ["clock"]),
        ({}, -61, ["clock"]),
        ({}, None, ["clock"]),
    ],
)
def test_what_is_not_certain_is_unknown(
    tmp_path: Path, row: dict[str, Any], sent: int | None, reasons: list[str]
) -> None:
    """A row with a gap, a share, a MIG instance, a GPU that no driver lists, a clock that is apart or not stated."""
    slurm = FakeSlurm(node_list=[Node("gpu1", address="10.0.0.1", gpus={"a100": 1})], levels={"oper": "Operator"})
    with running_hub(tmp_path, slurm, clock=StoppedClock(NOW)) as rig:
        hold(rig, record(7, "alice", **OPEN))
        sent_us = None if sent is None else (NOW - sent) * 1_000_000
        assert rig.post(batch(used(7, **row), sent_us=sent_us)).status == 200
        answer, found = job_answer(rig)
        assert (answer, [reason for reason in found if reason in reasons]) == ("unknown", reasons)


def test_ended_pending_and_cpu_jobs(idle_hub: Rig) -> None:
    """A job that has ended or waits is no; of one without GPUs nothing is known."""
    cpus: dict[str, Any] = {**OPEN, "gpus": 0, "alloc_tres": "cpu=4"}
    waits: dict[str, Any] = {**OPEN, "start": None, "state": "PENDING"}
    hold(idle_hub, record(9, "bob"), record(10, "bob", **waits), record(11, "bob", **cpus))
    assert job_answer(idle_hub, job="9") == ("no", ["ended"])
    assert job_answer(idle_hub, job="10") == ("no", ["pending"])
    assert job_answer(idle_hub, job="11") == ("unknown", ["cpus_only"])


def test_a_kept_job_is_no(idle_hub: Rig) -> None:
    """Where the owner keeps a run, the answer is no, until when is in the evidence."""
    assert asked(idle_hub, "/v1/jobs/7/idleness?for_s=1800")["answer"] == "yes"
    kept = idle_hub.post(b'{"seconds": 3600, "reason": "debugging"}', ALICE, target="/v1/jobs/7/keep")
    assert kept.status == 200, kept.body
    found = asked(idle_hub, "/v1/jobs/7/idleness?for_s=1800")
    assert (found["answer"], found["reasons"]) == ("no", ["kept"])
    assert found["runs"][0]["kept_until"] >= NOW + 3600


def test_accounting_that_is_not_read_makes_it_unknown(idle_hub: Rig) -> None:
    """Three minutes after accounting was last read nothing is certain of any run or node."""
    clock = idle_hub.clock
    assert isinstance(clock, StoppedClock)
    clock.go_on(200)
    found = asked(idle_hub, "/v1/jobs/7/idleness?for_s=1800")
    assert (found["answer"], found["reasons"]) == ("unknown", ["accounting"])
    assert asked(idle_hub, "/v1/nodes/gpu3/idleness?for_s=1800")["reasons"] == ["accounting"]


def signed(rig: Rig, uid: int, target: str) -> tuple[Answer, str]:
    """Return an answer, and the credential with which it was requested."""
    authorization = rig.credential(uid, "GET", target)
    return rig.send("GET", target, headers={"Authorization": authorization}), authorization


def test_the_answer_is_signed_for_its_request(idle_hub: Rig) -> None:
    """The signature covers the body and the credential of this request: that of another one does not fit."""
    target = "/v1/jobs/7/idleness?nonce=n1"
    answer, authorization = signed(idle_hub, ALICE, target)
    assert answer.headers["gpuwaste-ack"] == f"ack:{ALICE}:{ack_digest(answer.body, authorization)}"
    other, _ = signed(idle_hub, ALICE, target)
    assert other.body == answer.body
    assert other.headers["gpuwaste-ack"] != answer.headers["gpuwaste-ack"]
    assert "gpuwaste-ack" not in idle_hub.get(ALICE, "/v1/jobs/7").headers


def test_without_a_credential_nothing_is_answered(idle_hub: Rig) -> None:
    """No credential, or one for another request, is 401."""
    assert idle_hub.send("GET", "/v1/jobs/7/idleness").status == 401
    wrong = {"Authorization": idle_hub.credential(OPER, "GET", "/v1/jobs/8/idleness")}
    assert idle_hub.send("GET", "/v1/jobs/7/idleness", headers=wrong).status == 401


def test_openapi_has_the_answer(idle_hub: Rig) -> None:
    """/openapi.json has both routes with their bounds and the type of the answer."""
    found = idle_hub.get(OPER, "/openapi.json").json
    route = found["paths"]["/v1/jobs/{job_id}/idleness"]["get"]
    bounds = {one["name"]: one["schema"] for one in route["parameters"]}
    assert {"job_id", "for_s", "max_age_s", "nonce"} == bounds.keys()
    assert "/v1/nodes/{node}/idleness" in found["paths"]
    schema = route["responses"]["200"]["content"]["application/json"]["schema"]
    properties = schema["properties"] if "properties" in schema else found["components"]["schemas"]["IdlenessDocument"]
    assert set(properties["answer"]["enum"]) == {"yes", "no", "unknown"}

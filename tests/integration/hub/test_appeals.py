"""What one file declares as a resource is there as /v1, page, forms, OpenAPI and command: appeals are one."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Answer, Rig, running_hub
from tests.unit.advisor.verdicts import verdict

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import ActionEntry, ActionQuestion, ActionReport
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.cli.main import main
from gpuwaste.core.scope import Scope
from gpuwaste.hub.roles import Roles
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.appeals.appeal_service import Appeals
from gpuwaste.ledger.appeals.appeal_types import AppealOrder
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import HOUR, record

ALICE, BOB = 1001, 1002


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub where root is an operator, with an appeal of alice and one of bob."""
    with running_hub(tmp_path, FakeSlurm(levels={"root": "Operator"})) as rig:
        upsert_jobs(rig.store, [record(20, "alice"), record(21, "bob")])
        rig.hub.get(Appeals).appeal(Scope("alice"), AppealOrder(job="20", reason="=warm"))
        rig.hub.get(Appeals).appeal(Scope("bob"), AppealOrder(job="21", reason="busy"))
        yield rig


def command(hub: Rig, *words: str) -> int:
    """Run `gpuwaste appeal` as root, over the hub's socket."""
    file = hub.directory / "gpuwaste.toml"
    file.write_text(f'[common]\nhub_url = "unix:{hub.socket}"\n')
    return main(["appeal", *words, "--config", str(file)])


def test_users_see_their_own_and_operators_all(hub: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    """/v1, the page and the command keep to what the caller may see; another user's are not found."""
    own = hub.get(ALICE, "/v1/appeals").json
    assert [(one["printed_id"], one["words"]) for one in own["appeals"]] == [("20", "=warm")]
    assert hub.get(ALICE, "/v1/appeals?user=bob").status == 404
    assert "=warm" in hub.page(ALICE, "/appeals").body.decode()
    assert "busy" not in hub.page(ALICE, "/appeals").body.decode()
    assert command(hub) == 0
    text = capsys.readouterr().out
    assert "busy" in text
    assert "=warm" in text


def test_each_form_has_the_same_rows(hub: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON and CSV come from the page's address and from the command; a formula stays text."""
    assert command(hub, "--json", "-u", "alice") == 0
    by_command = json.loads(capsys.readouterr().out)
    for row in by_command["appeals"]:
        row["evidence"] = ""  # for operators
    assert by_command["appeals"] == hub.page(ALICE, "/appeals.json").json["appeals"]
    assert command(hub, "--csv", "--limit", "1") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["printed_id"], row["words"]) == ("20", "'=warm")
    assert (
        hub.page(ALICE, "/appeals.csv")
        .body.decode()
        .startswith("id,kind,about,printed_id,user,at_utc,words,runs,evidence,")
    )


def test_bounds_are_refused_and_described(hub: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    """What the question's fields allow is what OpenAPI says; nothing found is exit code 3."""
    assert hub.get(ALICE, "/v1/appeals?limit=0").status == 400
    described = hub.send("GET", "/openapi.json").json["paths"]["/v1/appeals"]["get"]
    (limit,) = [one["schema"] for one in described["parameters"] if one["name"] == "limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 1000, 100)
    assert command(hub, "-u", "carol") == 3
    assert "no appeals found" in capsys.readouterr().err


OPER = 1004
CANCELLED = {
    "rule": "idle-gpus", "rule_hash": "h", "kind": "cancel", "facts": '{"ledger.idle_s": 7200}', "approve": "none",
    "decided": HOUR + 60, "expires": 2**40, "status": "intended", "since": HOUR + 60, "user": "alice",
}  # fmt: skip


def post(hub: Rig, uid: int, target: str, order: dict[str, Any]) -> Answer:
    """Send an order."""
    body = json.dumps(order).encode()
    return hub.send("POST", target, body, {"Authorization": hub.credential(uid, "POST", target, body)})


def cancelled(hub: Rig, job: int = 20) -> ActionEntry:
    """Store a cancellation that was done."""
    hub.slurm.levels["oper"] = "Operator"
    hub.hub.get(Roles)._next_us = 0
    run = RunKey("gw", job, HOUR)
    known: dict[str, Any] = {"id": f"{job:064d}", "subject": str(run), "cluster": "gw", "job_id": job, "start": HOUR}
    manager = hub.hub.get(ActionParts).manager
    assert manager.intend([ActionEntry(**{**CANCELLED, **known, "rule": ""})])
    row = manager.store.found(known["id"])[0]
    for status in ("sent", "confirmed"):
        assert manager.report(row, ActionReport(actor="a", status=status, plan={})) == ""
        row = manager.store.found(row.id)[0]
    return row


def test_an_appeal_of_a_cancelled_job_goes_to_staff_with_its_evidence_and_a_reply_closes_it(hub: Rig) -> None:
    """The action and the facts are for staff; the user gets the reply, on the page, by the command and by mail."""
    action = cancelled(hub)
    answer = post(hub, ALICE, "/v1/appeals", {"job": "20", "reason": "it waited for a license"})
    assert answer.status == 200, answer.body
    appeal = answer.json["appeal"]
    assert (appeal["kind"], appeal["about"], appeal["status"], appeal["runs"]) == ("action", action.id, "open", 1)
    listed = hub.get(OPER, "/v1/appeals?status=open").json["appeals"]
    of_staff = next(one for one in listed if one["id"] == appeal["id"])
    assert json.loads(of_staff["evidence"])["facts"] == {"ledger.idle_s": 7200}
    assert {one["evidence"] for one in hub.get(ALICE, "/v1/appeals").json["appeals"]} == {""}
    target = f"/v1/appeals/{appeal['id']}/reply"
    reply = {"text": "You are right.", "outcome": "upheld"}
    assert post(hub, ALICE, target, reply).status == 403
    assert post(hub, OPER, target, reply).json["appeal"]["status"] == "closed"
    again = post(hub, OPER, target, reply)
    assert (again.status, "is closed: nothing is changed" in again.json["error"]) == (409, True)
    assert "You are right." in hub.page(ALICE, "/jobs/20").body.decode()
    mails = [row for row in hub.hub.get(ActionParts).store.listed(ActionQuestion(start=0)) if row.kind == "notify"]
    assert [(row.user, "Reply of oper" in row.options["text"]) for row in mails] == [("alice", True)]
    kinds = [one["type"] for one in hub.get(OPER, "/v1/events?kinds=appeal.*").json["events"]]
    assert kinds[-2:] == ["gpuwaste.appeal.opened", "gpuwaste.appeal.closed"]


def test_advice_is_contested_by_its_id_also_where_the_job_was_rejected(hub: Rig) -> None:
    """The verdict of a submission without a job; of another user, or one that its user never saw, it is not found."""
    rejected = verdict(1, user="alice", action="reject", mode="enforce", lines=["no GPU"], run_job_id=None)
    hidden = verdict(2, user="alice", action="pass")
    hub.hub.get(VerdictStore).add([rejected, hidden], "ctl")
    answer = post(hub, ALICE, "/v1/appeals", {"job": rejected.id, "reason": "it needs one GPU"})
    assert answer.status == 200, answer.body
    appeal = answer.json["appeal"]
    assert (appeal["kind"], appeal["about"], appeal["printed_id"], appeal["runs"]) == ("verdict", rejected.id, "", 1)
    others = [(BOB, rejected.id), (ALICE, hidden.id), (ALICE, "0" * 16), (BOB, "20"), (BOB, "999"), (BOB, "x;y")]
    found = {(answer.status, answer.body) for answer in
             (post(hub, uid, "/v1/appeals", {"job": job, "reason": "x"}) for uid, job in others)}  # fmt: skip
    assert found == {(404, post(hub, BOB, "/v1/appeals", {"job": "998", "reason": "x"}).body)}


def test_a_flood_of_appeals_ends_and_one_on_the_same_replaces_the_last(hub: Rig) -> None:
    """Twenty open ones of a user at most; saying it again about the same job is no other appeal."""
    upsert_jobs(hub.store, [record(100 + n, "alice") for n in range(20)])
    for number in range(19):
        assert post(hub, ALICE, "/v1/appeals", {"job": str(100 + number), "reason": "x"}).status == 200
    assert post(hub, ALICE, "/v1/appeals", {"job": "20", "reason": "once more"}).status == 200
    full = post(hub, ALICE, "/v1/appeals", {"job": "119", "reason": "x"})
    assert (full.status, "20 of your appeals are open" in full.json["error"]) == (409, True)
    own = hub.get(ALICE, "/v1/appeals").json["appeals"]
    assert (len(own), [one["words"] for one in own if one["printed_id"] == "20"]) == (20, ["once more"])
    assert post(hub, BOB, "/v1/appeals", {"job": "21", "reason": "x"}).status == 200


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({}, "job"),
        ({"job": "20", "reason": ""}, "reason: say in a sentence"),
        ({"job": "20", "reason": "\x00\n"}, "reason: say in a sentence"),
        ({"job": "20", "reason": "x" * 501}, "longer than 500 characters"),
        ({"job": "20", "reason": "x" * 1_000_000}, "bytes, 32768 at most"),
        ({"job": "20", "reason": "x", "about": "action"}, "no rule has acted on the job"),
        ({"job": "20", "reason": "x", "about": "verdict"}, "the job got no advice"),
        ({"job": "20", "reason": "x", "about": "weather"}, "about"),
    ],
)
def test_bad_appeals_are_one_clear_line(hub: Rig, order: dict[str, Any], words: str) -> None:
    """Each is refused with what to do; nothing is stored."""
    before = hub.get(ALICE, "/v1/appeals").json["appeals"]
    answer = post(hub, ALICE, "/v1/appeals", order)
    assert (answer.status, words in answer.json["error"]) == (400, True), answer.body
    assert hub.get(ALICE, "/v1/appeals").json["appeals"] == before


def test_an_operator_replies_by_the_page(hub: Rig) -> None:
    """The form closes the appeal; a user has no form, and their request is refused."""
    cancelled(hub, 21)
    appeal = hub.get(ALICE, "/v1/appeals").json["appeals"][0]["id"]
    path, form = f"/appeals/{appeal}/reply", b"text=looked+at+it&outcome=dismissed"
    assert path in hub.page(OPER, "/appeals").body.decode()
    assert path not in hub.page(ALICE, "/appeals").body.decode()
    for uid, status in ((ALICE, 403), (OPER, 303), (OPER, 409)):
        same = {"Cookie": hub.cookie(uid), "Sec-Fetch-Site": "same-origin"}
        assert hub.send("POST", path, form, same).status == status
    assert "looked at it" in hub.page(ALICE, "/appeals").body.decode()

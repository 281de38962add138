"""Keeps over HTTP against a real store: who may, for how long, what they stop, and what the ladder does afterwards."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace
from tests.integration.hub import test_rules
from tests.integration.hub.rig import Answer, Rig
from tests.integration.hub.test_now import ALICE, NOW, OPEN, OPER
from tests.integration.hub.test_rule_orders import APPROVED, CANCEL, WARNED, lent, mailed, pause, rows
from tests.integration.hub.test_rules import RUN, firings, later, passed, work, write

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import ActionReport
from gpuwaste.act.keeps.keep_mail import answer_lines
from gpuwaste.act.keeps.keep_service import KeepService
from gpuwaste.act.keeps.keep_types import KeepOrder
from gpuwaste.act.keeps.kept_runs import Keeps
from gpuwaste.act.rules.rule_service import RuleService
from gpuwaste.act.rules.rule_text import rules_text
from gpuwaste.act.rules.rule_types import RulesDocument
from gpuwaste.core.refusal import Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.typed import convert
from gpuwaste.hub.roles import Roles
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.show.layout import Look
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.erasure import Erasure
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.hub_rows import HOUR, record

rig = test_rules.rig
BOB, CAROL = 1002, 1003
HOUR_S = 3600


def keep(rig: Rig, uid: int, job: str = "7", hours: float = 4, reason: str = "it waits for data") -> Answer:
    """Request a keep."""
    target, body = f"/v1/jobs/{job}/keep", json.dumps({"seconds": int(hours * HOUR_S), "reason": reason}).encode()
    return rig.send("POST", target, body, {"Authorization": rig.credential(uid, "POST", target, body)})


def error(answer: Answer) -> str:
    """Return the line of a refusal."""
    return str(answer.json["error"])


def test_the_owner_keeps_a_job_and_staff_see_it(rig: Rig) -> None:
    """The run is named by its whole key; the row, the event and the list have who, until when and why."""
    answer = keep(rig, ALICE, reason="it\x00 waits\nfor \x1b[31mdata")
    assert answer.status == 200, answer.body
    (kept,) = answer.json["keeps"]
    assert (kept["cluster"], kept["job_id"], kept["start"], kept["asked_by"]) == ("gw", 7, HOUR, "alice")
    assert (kept["until"] - kept["at"], kept["reason"]) == (4 * HOUR_S, "it waits for [31mdata")
    assert (answer.json["left_h"], answer.json["left_keeps"]) == (20.0, 19)
    assert rig.get(OPER, "/v1/keeps").json["keeps"] == rig.get(ALICE, "/v1/keeps?active=yes").json["keeps"] == [kept]
    assert rig.get(BOB, "/v1/keeps").json["keeps"] == []
    (told,) = rig.get(OPER, "/v1/events?kinds=job.kept").json["events"]
    assert (told["subject"], told["data"]["asked_by"]) == (RUN, "alice")
    found = rig.hub.get(Keeps).active([RunKey("gw", 7, HOUR), RunKey("gw", 8, HOUR)], NOW + 10)
    assert [str(run) for run in found] == [RUN]


def test_a_stranger_gets_the_bytes_of_a_job_that_does_not_exist(rig: Rig) -> None:
    """Another user's job, no job at all and no job id: one answer; nothing is stored."""
    answers = [keep(rig, BOB), keep(rig, BOB, "999"), keep(rig, BOB, "7;8")]
    assert {(answer.status, answer.body) for answer in answers} == {(404, answers[1].body)}
    assert rig.get(OPER, "/v1/keeps").json["keeps"] == []
    assert rig.get(BOB, "/v1/keeps?user=alice").status == 404


def test_a_coordinator_pays_from_their_own_budget_and_an_operator_from_none(rig: Rig) -> None:
    """A coordinator of proj1: alice's hours are not touched; an operator has no budget but the same maximum."""
    rig.slurm.account_coordinators = {"proj1": frozenset({"carol"})}
    rig.hub.get(Roles)._next_us = 0
    answer = keep(rig, CAROL, hours=2)
    assert (answer.json["keeps"][0]["asked_by"], answer.json["left_h"]) == ("carol", 22.0)
    assert keep(rig, CAROL, "8").status == 404, "proj2 is not hers"
    assert [one["printed_id"] for one in rig.get(CAROL, "/v1/keeps").json["keeps"]] == ["7"]
    longer = keep(rig, OPER, hours=3)
    assert (longer.json["left_h"], longer.json["keeps"][0]["since"]) == (None, answer.json["keeps"][0]["until"])
    assert "at most 12 h" in error(keep(rig, OPER, hours=13))


def test_staff_of_a_group_see_keeps_and_request_none(rig: Rig) -> None:
    """They see all jobs, but are neither owner nor operator."""
    service = rig.hub.get(KeepService)
    with pytest.raises(Refusal, match="only the owner"):
        service.keep(Scope("dave", everything=True), "7", KeepOrder(seconds=60, reason="x"))


def test_the_budget_of_a_week(rig: Rig) -> None:
    """Hours add up over runs; an overlap is paid once; what is over comes back after seven days."""
    for job in ("11", "12", "13"):
        upsert_jobs(rig.store, [record(int(job), "alice", **OPEN)])
        assert keep(rig, ALICE, job, 7).status == 200
    assert "3 h and 17 keeps are left of the last 7 days" in error(keep(rig, ALICE, hours=4))
    assert keep(rig, ALICE, hours=3).json["left_h"] == 0.0
    again = keep(rig, ALICE, hours=3)
    assert (again.status, "is kept until" in error(again)) == (409, True)
    assert isinstance(rig.clock, ShiftedClock)
    rig.clock.later_s += 8 * 86400
    assert keep(rig, ALICE, hours=12).json["left_h"] == 12.0


def test_a_longer_keep_costs_what_it_adds(rig: Rig) -> None:
    """Two hours kept already, six from now: four are new."""
    assert keep(rig, ALICE, hours=2).json["left_h"] == 22.0
    assert keep(rig, ALICE, hours=6).json["left_h"] == 18.0
    found = rig.hub.get(Keeps).active([RunKey("gw", 7, HOUR)], NOW + 10)
    assert next(iter(found.values())).until >= NOW + 6 * HOUR_S


def test_a_flood_of_keeps_ends_at_their_number(rig: Rig) -> None:
    """Keeps of a minute cost almost no hours: their number is bounded too."""
    rig.hub.get(KeepService).budget = rig.hub.get(KeepService).budget.__class__(24.0, 12.0, 3)
    for minutes in (1, 2, 3):
        assert keep(rig, ALICE, hours=minutes / 60).status == 200
    assert "all 3 keeps" in error(keep(rig, ALICE, hours=4 / 60))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the keep"),
        (b"\xff\xfe", ""),
        (b'{"seconds": 3600}', "reason"),
        (b'{"seconds": 1e400, "reason": "x"}', ""),
        (b'{"seconds": 99999999999, "reason": "x"}', "seconds"),
        (b'{"seconds": -1, "reason": "x"}', "seconds"),
        (b'{"seconds": 3600, "reason": "x", "user": "bob"}', "user"),
        (b'{"seconds": 3600, "reason": "\\u0000 \\n"}', "reason: empty"),
        (json.dumps({"seconds": 3600, "reason": "x" * 501}).encode(), "501 characters, 500 at most"),
        (json.dumps({"seconds": 3600, "reason": "x" * 1_000_000}).encode(), "the body has 1000031 bytes"),
        (b'{"seconds": 46800, "reason": "x"}', "at most 12 h"),
        (b'{"seconds": 3600, "reason": "' + b"[" * 9000 + b'"}', "characters"),
    ],
)
def test_bad_orders_are_one_clear_line(rig: Rig, body: bytes, words: str) -> None:
    """Empty, binary, without a reason, for ever, with a reason of a megabyte: HTTP 400, and nothing is stored."""
    target = "/v1/jobs/7/keep"
    answer = rig.send("POST", target, body, {"Authorization": rig.credential(ALICE, "POST", target, body)})
    assert answer.status == 400, answer.body
    assert words in error(answer)
    assert len(error(answer)) < 300
    assert rig.get(OPER, "/v1/keeps").json["keeps"] == []


def test_a_job_that_has_ended_and_the_next_of_its_id(rig: Rig) -> None:
    """Nothing is left to keep; a keep of one run never covers the next run of the same id."""
    assert keep(rig, ALICE).status == 200
    upsert_jobs(rig.store, [record(7, "alice")])
    ended = keep(rig, ALICE)
    assert (ended.status, error(ended)) == (409, "job 7 has ended: nothing to keep")
    upsert_jobs(rig.store, [record(7, "alice", **{**OPEN, "start": NOW - 100, "submit": NOW - 200})])
    again = RunKey("gw", 7, NOW - 100)
    assert rig.hub.get(Keeps).active([again], NOW) == {}
    assert keep(rig, ALICE).json["keeps"][0]["start"] == NOW - 100


def test_of_an_array_the_running_tasks_are_kept_or_one(rig: Rig) -> None:
    """Each task costs its hours; more tasks than one keep covers are refused with a task's name."""
    tasks = [
        record(100 + n, "alice", **{**OPEN, "printed_id": f"100_{n}", "array_job_id": 100, "array_task_id": n})
        for n in range(60)
    ]
    upsert_jobs(rig.store, tasks[:3])
    answer = keep(rig, ALICE, "100", 2)
    assert [one["printed_id"] for one in answer.json["keeps"]] == ["100_0", "100_1", "100_2"]
    assert answer.json["left_h"] == 18.0
    upsert_jobs(rig.store, tasks)
    assert "60 running tasks, one keep covers 50" in error(keep(rig, ALICE, "100", 1))
    assert [one["printed_id"] for one in keep(rig, ALICE, "100_9", 1).json["keeps"]] == ["100_9"]


@pytest.mark.parametrize("approved", [False, True])
def test_a_keep_between_decision_and_lending_stops_the_action(rig: Rig, *, approved: bool) -> None:
    """What waits for the actor, approved or not, is dropped at once with the reason; nothing is lent."""
    write(rig, APPROVED if approved else CANCEL)
    passed(rig)
    (row,) = rows(rig, "cancel")
    manager = rig.hub.get(ActionParts).manager
    if approved:
        assert manager.decide(row, "oper", approve=True)
    assert lent(rig) == "cancel"
    answer = keep(rig, ALICE)
    assert (answer.json["stopped"], answer.json["too_late"]) == (1, [])
    assert lent(rig) == ""
    assert "kept until" in manager.report(row, ActionReport(actor="a", status="sent"))
    (row,) = rows(rig, "cancel")
    assert (row.status, "by alice: it waits for data" in row.reason) == ("moot", True)


def test_an_intent_decided_while_the_keep_arrived_is_not_sent(rig: Rig) -> None:
    """The pass read its keeps before: the gate at the sending refuses it, and the next pass drops it."""
    write(rig, CANCEL)
    keeps = rig.hub.get(RuleService).keeps
    rig.hub.get(RuleService).keeps = type("Late", (), {"since": lambda *_: {}, "spare": lambda *_: None})()
    assert keep(rig, ALICE).status == 200
    passed(rig)
    (row,) = rows(rig, "cancel")
    assert "kept until" in rig.hub.get(ActionParts).manager.report(row, ActionReport(actor="a", status="sent"))
    rig.hub.get(RuleService).keeps = keeps
    passed(rig, 1, 60)
    (row,) = rows(rig, "cancel")
    assert row.status == "moot"
    assert lent(rig) == ""


def test_too_late_is_said_and_costs_nothing(rig: Rig) -> None:
    """The cancel was noted as sent: the answer has when, no keep is recorded."""
    write(rig, CANCEL)
    passed(rig)
    (row,) = rows(rig, "cancel")
    assert rig.hub.get(ActionParts).manager.report(row, ActionReport(actor="a", status="sent", plan={"job": "7"})) == ""
    answer = keep(rig, ALICE)
    assert answer.status == 409
    assert error(answer).startswith("too late: job 7: cancel was sent at 20")
    assert rig.get(ALICE, "/v1/keeps").json["keeps"] == []


def test_after_a_checkpoint_it_is_not_too_late(rig: Rig) -> None:
    """The job got its signal, and goes on: its owner can still stop the cancellation that would follow."""
    write(rig, CANCEL.replace('action = "cancel"', 'action = "checkpoint"\nsignal = "USR1"'))
    passed(rig)
    (row,) = rows(rig, "checkpoint")
    manager = rig.hub.get(ActionParts).manager
    for status in ("sent", "confirmed"):
        assert manager.report(row, ActionReport(actor="a", status=status, plan={"job": "7"})) == ""
    assert keep(rig, ALICE).status == 200


def test_a_cancel_that_was_sent_without_effect_is_not_sent_again(rig: Rig) -> None:
    """A keep from before the second sending: the action fails instead of blocking all others."""
    write(rig, CANCEL)
    passed(rig)
    (row,) = rows(rig, "cancel")
    manager = rig.hub.get(ActionParts).manager
    sent = ActionReport(actor="a", status="sent", plan={"job": "7"})
    assert manager.report(row, sent) == ""
    rig.hub.get(Keeps).store.add([_row(rig)])
    assert "kept until" in manager.report(rows(rig, "cancel")[0], sent)
    assert [(one.status, "not sent again" in one.reason) for one in rows(rig, "cancel")] == [("failed", True)]


def _row(rig: Rig) -> Any:
    """Return a keep of another job's order, for job 7."""
    keep(rig, BOB, "8")
    (found,) = rig.hub.get(Keeps).store.since(NOW)
    return replace(found, job_id=7, id="other")


def test_after_a_keep_the_ladder_begins_with_a_new_warning(rig: Rig) -> None:
    """Warned, kept, the time over with idle GPUs all the while: the next step is the mail, then the cancellation."""
    write(rig, WARNED)
    passed(rig)
    mailed(rig)
    assert keep(rig, ALICE, hours=2).status == 200
    passed(rig, 10, 480)
    assert [step for *_, step, _ in firings(rig)] == [1]
    figures = rig.hub.get(RuleService).figures
    assert figures.left["idle"] == {"kept": 1}
    look = rig.send(
        "POST", "/v1/rules/look", body := json.dumps({"name": "idle", "text": WARNED, "job": "7"}).encode(),
        {"Authorization": rig.credential(OPER, "POST", "/v1/rules/look", body)},
    ).json["found"][0]  # fmt: skip
    assert (look["due"], look["kept"].endswith("by alice: it waits for data")) == ("", True)
    passed(rig, 6, 480)
    assert [step for *_, step, _ in firings(rig)] == [1, 1]
    assert lent(rig) == ""
    passed(rig, 4, 480)
    assert [step for *_, step, _ in firings(rig)] == [1, 1, 2]
    assert lent(rig) == "", "its warning was not sent"
    mailed(rig)
    assert lent(rig) == "cancel"


def test_a_keep_shorter_than_the_time_between_two_passes_counts_too(rig: Rig) -> None:
    """A cancellation was decided and dropped by a keep of a minute: warned anew, also after the hub's restart."""
    write(rig, WARNED)
    passed(rig)
    mailed(rig)
    passed(rig, 5, 480)
    assert [step for *_, step, _ in firings(rig)] == [1, 2]
    assert lent(rig) == "cancel"
    assert keep(rig, ALICE, hours=1 / 60).json["stopped"] == 1
    later(rig, 480)
    rig.hub.get(RuleService)._known = None
    passed(rig)
    assert [step for *_, step, _ in firings(rig)] == [1, 2, 1]
    assert lent(rig) == ""


def test_a_keep_during_which_the_facts_are_unknown_interrupts_too(rig: Rig) -> None:
    """The agents are silent during the keep, so the condition does not hold then: the ladder begins anew too."""
    write(rig, WARNED)
    passed(rig)
    mailed(rig)
    assert keep(rig, ALICE, hours=1 / 6).status == 200
    for _ in range(2):
        pause(rig, 300)
        passed(rig)
    passed(rig, 2, 480)
    assert [step for *_, step, _ in firings(rig)] == [1, 1]


def test_a_rule_that_protects_the_job_does_not_wait(rig: Rig) -> None:
    """With keep = false the signal before the limit is sent; such a rule may not cancel."""
    text = 'mode = "act"\nkeep = false\napprove = "none"\nnotify = "none"\nafter = "0s"\n'
    text += 'where = "ledger.idle_s >= 600.0"\n'
    write(rig, text + '[[do]]\naction = "signal"\n')
    assert keep(rig, ALICE).status == 200
    passed(rig, 1, 60)
    assert [row.status for row in rows(rig, "signal")] == ["intended"]
    manager = rig.hub.get(ActionParts).manager
    assert manager.next(["signal"]) is not None
    assert manager.report(rows(rig, "signal")[0], ActionReport(actor="a", status="sent")) == ""
    write(rig, text + '[[do]]\naction = "cancel"\n')
    rig.hub.get(RuleService).rules.refresh()
    assert "keep: false is for rules that protect a job, 'cancel' does not" in str(
        rig.hub.get(RuleService).rules.errors[0]
    )


def test_the_form_of_the_job_s_page(rig: Rig) -> None:
    """The owner keeps the job there and sees until when; a stranger's form finds no job; odd hours are refused."""
    assert 'action="/jobs/7/keep"' in rig.page(ALICE, "/jobs/7").body.decode()
    form = urlencode({"hours": "4", "reason": "  it waits  for <b>data</b> "}).encode()
    answer = sent(rig, ALICE, form)
    assert (answer.status, answer.headers["location"]) == (303, "/jobs/7#keep")
    shown = rig.page(ALICE, "/jobs/7").body.decode()
    assert "it waits for &lt;b&gt;data&lt;/b&gt;" in shown
    assert "it waits for &lt;b&gt;data&lt;/b&gt;" in rig.page(OPER, "/keeps").body.decode()
    assert "it waits" not in rig.page(BOB, "/keeps").body.decode()
    assert sent(rig, BOB, form).status == 404
    for bad in (b"", b"\xff", b"hours=100000&reason=x", b"hours=4", b"a&" * 100):
        assert sent(rig, ALICE, bad).status == 400


def sent(rig: Rig, uid: int, body: bytes) -> Answer:
    """Send the form of job 7's page."""
    return rig.send("POST", "/jobs/7/keep", body, {"Cookie": rig.cookie(uid), "Sec-Fetch-Site": "same-origin"})


def test_a_keep_is_in_the_inventory_of_names(rig: Rig) -> None:
    """An erased owner, and an erased coordinator who kept another's job, leave neither name nor reason."""
    assert keep(rig, ALICE, reason="alice needs it").status == 200
    assert keep(rig, OPER, "8", reason="bob asked").status == 200
    for name in ("alice", "oper"):
        with rig.store.writing() as db:
            Erasure(db, name).erase()
    with rig.store.reader() as db:
        text = str(db.execute("SELECT * FROM keeps").fetchall())
    assert "alice" not in text
    assert "oper" not in text


FLOOR = "precision_floor = 0.9\nprecision_steps = 1\n" + CANCEL


def misjudged(rig: Rig) -> None:
    """Have the rule decide on a cancellation, and the job work again before it is sent."""
    write(rig, FLOOR)
    passed(rig)
    assert lent(rig) == "cancel"
    later(rig, 300)
    work(rig)
    rig.hub.get(RuleService).demotions._judged_utc = None


def test_a_rule_that_misjudges_goes_back_to_notify_by_itself_and_says_so(rig: Rig) -> None:
    """What it wanted is dropped; the list, the question about a job, the log and a mail to staff have the reason."""
    misjudged(rig)
    passed(rig)
    (standing,) = rig.get(OPER, "/v1/rules").json["rules"]
    assert (standing["mode"], standing["demoted_why"][:28]) == ("notify", "1 of 1 judged runs were misj")
    assert (standing["live"]["judged"], standing["live"]["wrong"], standing["live"]["precision"]) == (1, 1, 0.0)
    assert [row.status for row in rows(rig, "cancel")] == ["moot"]
    (mail,) = rows(rig, "notify")
    assert (mail.options["to"], mail.subject) == ("staff", "rule/idle")
    assert len(rig.get(OPER, "/v1/events?kinds=rule.demoted").json["events"]) == 1
    shown = rules_text(convert(rig.get(OPER, "/v1/rules").json, RulesDocument), Look())
    assert "to act again: gpuwaste rules restore idle" in shown
    assert "live precision" in shown
    metrics = rig.send("GET", "/metrics").body.decode()
    assert 'gpuwaste_hub_rule_precision{rule="idle"} 0.0' in metrics


def test_a_demoted_rule_only_records_until_an_operator_restores_it(rig: Rig) -> None:
    """Another idle job is recorded, not cancelled, after a restart too; users and staff may not restore."""
    misjudged(rig)
    passed(rig)
    upsert_jobs(rig.store, [record(17, "alice", **OPEN)])
    before = len(rows(rig, "cancel"))
    rig.hub.get(RuleService)._known = None
    passed(rig, 3, 480)
    assert len(rows(rig, "cancel")) == before
    assert order(rig, ALICE, "/v1/rules/idle/restore").status == 403
    assert order(rig, OPER, "/v1/rules/other/restore").status == 404
    assert order(rig, OPER, "/v1/rules/idle/restore").json["mode"] == "act"
    assert order(rig, OPER, "/v1/rules/idle/restore").status == 409
    assert rig.get(OPER, "/v1/rules").json["rules"][0]["mode"] == "act"
    passed(rig, 1, 60)
    assert rig.get(OPER, "/v1/rules").json["rules"][0]["mode"] == "act", "what was before does not count again"


def order(rig: Rig, uid: int, target: str) -> Answer:
    """Send an order without a body."""
    return rig.send("POST", target, b"{}", {"Authorization": rig.credential(uid, "POST", target, b"{}")})


def test_the_mail_of_a_rule_says_how_to_answer(rig: Rig) -> None:
    """The command with the job, and the address of its page; a mail to staff has neither."""
    write(rig, WARNED)
    passed(rig)
    (row,) = rows(rig, "notify")
    mail = rig.hub.get(ActionParts)._mail
    lines = "\n".join(mail._end_of(row))
    assert '  gpuwaste keep 7 --for 4h --reason "..."' in lines
    assert '  gpuwaste appeal 7 --reason "..."' in lines
    assert mail._end_of(replace(row, options={**row.options, "to": "staff"})) == ()
    assert (
        answer_lines("3_1", 12.0, "https://hub.example.org/")[-1] == "The job's page: https://hub.example.org/jobs/3_1"
    )
    assert not any("keep" in line for line in answer_lines("7", 0.0, ""))
    assert "  gpuwaste keep 7 --for 30m" in "\n".join(answer_lines("7", 0.5, ""))

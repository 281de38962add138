"""The hub's rules over a real store: the ladder, modes, exemptions, incomplete data, restarts, clocks, routes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Rig, running_hub
from tests.integration.hub.test_now import ALICE, NOW, OPEN, OPER, used

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import ActionQuestion, ActionReport
from gpuwaste.act.events.event_service import EventService
from gpuwaste.act.rules.rule_moments import ModelMoment
from gpuwaste.act.rules.rule_service import RuleService
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import HOUR, batch, record

LADDER = """
mode = "MODE"
where = "ledger.idle_s >= 600.0"
since = "ledger.idle_s"
approve = "none"
[[do]]
after = "30m"
action = "notify"
subject = "Job {job.id} is idle"
text = "Your job {job.id} has held {job.gpus} idle GPUs for {ledger.idle_s}."
[[do]]
after = "1h"
action = "cancel"
"""
RUN = f"gw/7@{HOUR}"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub: job 7 of alice idles on gpu1, job 8 of bob works there, job 9 of bob holds gpu2, which is silent."""
    nodes = [Node(f"gpu{n}", address=f"10.0.0.{n}") for n in (1, 2)]
    slurm = FakeSlurm(node_list=nodes, levels={"oper": "Operator"})
    (tmp_path / "rules.d").mkdir()
    keys = {"rules_dir": str(tmp_path / "rules.d")}
    with running_hub(tmp_path, slurm, clock=ShiftedClock(NOW), hub_keys=keys) as found:
        found.hub.get(ClusterFacts).refresh()
        upsert_jobs(
            found.store,
            [
                record(7, "alice", **OPEN),
                record(8, "bob", "proj2", **OPEN),
                record(9, "bob", "proj2", **{**OPEN, "nodes": "gpu2"}),
            ],
        )
        assert found.post(batch(used(7, 0), used(8, 90))).status == 200
        yield found


def write(rig: Rig, text: str, name: str = "idle") -> None:
    (rig.directory / "rules.d" / f"{name}.toml").write_text(text)


def later(rig: Rig, seconds: int) -> None:
    """Let time go by, with job 7 idle and job 8 at work until then, as their agent reports."""
    assert isinstance(rig.clock, ShiftedClock)
    rig.clock.later_s += seconds
    until = NOW + rig.clock.later_s - 60
    rows = []
    for number, begin in enumerate(range(HOUR, until, 3600)):
        end = min(begin + 3600, until)
        more: dict[str, Any] = {
            "hour_utc": begin,
            "t0_ms": begin * 1000,
            "t1_ms": end * 1000,
            "seq": 10 + rig.clock.later_s,
        }
        span = (end - begin) * 1000
        rows.append(used(7, 0, **{**more, "util_ms": {0: span}, "idle_run_ms": span}))
        rows.append(used(8, 90, **{**more, "util_ms": {90: span}, "last_active_ms": end * 1000}))
        assert number < 20
    assert rig.post(batch(*rows)).status == 200


def work(rig: Rig) -> None:
    """Have the agent report that job 7 has been at work in this hour, until a minute ago."""
    assert isinstance(rig.clock, ShiftedClock)
    until = NOW + rig.clock.later_s - 60
    begin = until // 3600 * 3600
    hours = {"hour_utc": begin, "t0_ms": begin * 1000, "seq": 10**6}
    assert rig.post(batch(used(7, 90, until=until, **hours, util_ms={90: (until - begin) * 1000}))).status == 200


def firings(rig: Rig) -> list[tuple[str, str, int, bool]]:
    """Return rule, subject, step and whether it is done, of the events in the stream."""
    answer = rig.get(OPER, "/v1/events?kinds=rule.fired")
    assert answer.status == 200, answer.body
    found = [event["data"] for event in answer.json["events"]]
    return [(one["rule"], one["subject"], one["step"], one["done"]) for one in found]


def intents(rig: Rig) -> list[tuple[str, str]]:
    """Return kind and subject of the actions that the store has, the oldest first."""
    rows = rig.hub.get(ActionParts).store.listed(ActionQuestion(start=0, end=2**40))
    return sorted((row.kind, row.subject) for row in rows)


def passed(rig: Rig, times: int = 1, seconds: int = 0) -> None:
    for _ in range(times):
        if seconds:
            later(rig, seconds)
        rig.hub.get(RuleService).step()


@pytest.mark.parametrize(("mode", "wanted"), [("observe", []), ("notify", ["notify"]), ("act", ["cancel", "notify"])])
def test_an_idle_job_goes_up_the_ladder_as_far_as_the_mode_lets_it(rig: Rig, mode: str, wanted: list[str]) -> None:
    """Both steps are events in each mode; only what the mode allows is intended; others' jobs are left alone."""
    write(rig, LADDER.replace("MODE", mode))
    passed(rig, 12, 480)
    assert firings(rig) == [("idle", RUN, 1, mode != "observe"), ("idle", RUN, 2, mode == "act")]
    assert intents(rig) == [(kind, RUN) for kind in wanted]


def test_events_are_seen_in_what_rules_have_just_taken(rig: Rig) -> None:
    """The runs are judged once a minute for both; without a pass of the rules the sources judge them by themselves."""
    write(rig, LADDER.replace("MODE", "observe"))
    passed(rig)
    taken = rig.hub.get(NowReads)._known
    rig.hub.get(EventService).look()
    assert rig.hub.get(NowReads)._known is taken
    rig.hub.get(EventService).look()
    assert rig.hub.get(NowReads)._known is not taken
    passed(rig)
    later(rig, 120)
    taken = rig.hub.get(NowReads)._known
    rig.hub.get(EventService).look()
    assert rig.hub.get(NowReads)._known is not taken, "two minutes old"


def test_the_texts_name_the_facts(rig: Rig) -> None:
    """What the user reads has the job's id and a duration; the intent keeps the facts as they were."""
    write(rig, LADDER.replace("MODE", "notify"))
    passed(rig, 1)
    intent = rig.hub.get(ActionParts).store.listed(ActionQuestion(start=0, end=2**40))[0]
    assert intent.options["text"] == "Your job 7 has held 1 idle GPUs for 33 min."
    assert (intent.user, intent.account, str(intent.run)) == ("alice", "proj1", RUN)
    assert json.loads(intent.facts)["ledger.idle_s"] == 2000


def test_a_restart_does_no_step_twice(rig: Rig) -> None:
    """A hub that begins anew finds the ladder in its store."""
    write(rig, LADDER.replace("MODE", "act"))
    passed(rig, 1)
    for _ in range(3):
        rig.hub.get(RuleService)._known = None
        passed(rig, 1, 60)
    assert intents(rig) == [("notify", RUN)]


@pytest.mark.parametrize("sent", [False, True])
def test_what_waits_is_dropped_once_the_condition_holds_no_more(rig: Rig, *, sent: bool) -> None:
    """The job works again while its cancellation waits for a person: nobody can approve it, and it is never sent.

    What was sent already is the actor's to end.
    """
    head = 'mode = "act"\nwhere = "ledger.idle_s >= 600.0"\napprove = "person"\nvalid = "12h"\n'
    write(rig, f'{head}notify = "none"\n[[do]]\nafter = "0s"\naction = "cancel"\n')
    passed(rig, 1)
    passed(rig, 2, 480)
    manager = rig.hub.get(ActionParts).manager
    (waiting,) = manager.store.listed(ActionQuestion(start=0, end=2**40))
    assert manager.decide(waiting, "oper", approve=True)
    if sent:
        assert manager.report(waiting, ActionReport(actor="a", status="sent", plan={"job": "7"})) == ""
    passed(rig, 1)
    assert manager.store.found(waiting.id)[0].status == ("sent" if sent else "approved")
    work(rig)
    passed(rig, 1)
    row = manager.store.found(waiting.id)[0]
    assert (row.status, "no longer holds" in row.reason) == (("sent", False) if sent else ("moot", True))
    assert sent or "moot" in manager.report(row, ActionReport(actor="a", status="sent"))


@pytest.mark.parametrize(("works", "status"), [(False, "intended"), (True, "moot")])
def test_a_restart_of_the_hub_drops_only_what_is_over(rig: Rig, *, works: bool, status: str) -> None:
    """The hub was down for two hours, and agents send what they measured meanwhile a few minutes after it is back."""
    head = (
        'mode = "act"\nwhere = "ledger.idle_s >= 600.0 && ledger.age_s < 1200.0"\napprove = "person"\nvalid = "12h"\n'
    )
    write(rig, f'{head}notify = "none"\n[[do]]\nafter = "0s"\naction = "cancel"\n')
    passed(rig, 1)
    store = rig.hub.get(ActionParts).store
    (waiting,) = store.listed(ActionQuestion(start=0, end=2**40))
    assert isinstance(rig.clock, ShiftedClock)
    rig.clock.later_s += 7200
    passed(rig, 1)
    rig.clock.later_s += 60
    passed(rig, 1)
    assert store.found(waiting.id)[0].status == "intended"
    later(rig, 120)
    if works:
        work(rig)
    passed(rig, 1)
    rig.clock.later_s += 500
    passed(rig, 1)
    assert store.found(waiting.id)[0].status == status


def test_a_crash_after_the_intent_makes_no_second_action(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The intent is stored, the pass is not: decided again, it has the same id."""
    write(rig, LADDER.replace("MODE", "act"))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rig.hub.get(RuleService).store, "save", crash)
        with pytest.raises(KeyboardInterrupt):
            rig.hub.get(RuleService).step()
    rig.hub.get(RuleService)._known = None
    passed(rig, 2, 60)
    assert intents(rig) == [("notify", RUN)]
    assert len(firings(rig)) == 1


@pytest.mark.parametrize(
    "table",
    [
        'users = ["ali*"]',
        'accounts = ["proj1"]',
        'partitions = ["*"]',
    ],
)
def test_exempt_jobs_are_left_alone(rig: Rig, table: str) -> None:
    """By user, account or partition."""
    write(rig, LADDER.replace("MODE", "act").replace("[[do]]", f"[exempt]\n{table}\n[[do]]", 1))
    passed(rig, 1)
    assert not firings(rig)
    assert sum(rig.hub.get(RuleService).figures.left["idle"].values()) == 1


def test_a_job_of_which_little_is_known_is_left_alone(rig: Rig) -> None:
    """Two thirds of its time are unknown: below the floor of 0.8, however long its GPU has been idle since."""
    write(rig, LADDER.replace("MODE", "act"))
    known: dict[str, Any] = {
        "util_ms": {0: 700_000},
        "idle_run_ms": 700_000,
        "unknown_ms": {"missing_samples": 1_300_000},
        "seq": 5,
    }
    assert rig.post(batch(used(7, 0, **known))).status == 200
    passed(rig, 1)
    assert not firings(rig)
    assert rig.hub.get(RuleService).figures.left["idle"] == {"coverage": 1}


def test_what_is_not_known_never_acts(rig: Rig) -> None:
    """Job 9's node is silent: neither idle nor not idle matches it, and once nothing comes of job 7 it is so, too."""
    text = LADDER.replace("MODE", "act").replace("ledger.idle_s >= 600.0", "!(ledger.idle_s > 1.0e9)")
    write(rig, text.replace('since = "ledger.idle_s"', "").replace('after = "30m"', 'after = "0s"'))
    passed(rig, 1)
    assert sorted(subject for _, subject, *_ in firings(rig)) == [f"gw/7@{HOUR}", f"gw/8@{HOUR}"]
    assert isinstance(rig.clock, ShiftedClock)
    rig.clock.later_s += 20_000
    rig.hub.get(RuleService).step()
    assert len(firings(rig)) == 2


def test_a_clock_that_jumps_makes_nothing_hold_longer(rig: Rig) -> None:
    """By the hub's own clock a condition holds only through time that was observed; back or forth it begins anew."""
    write(rig, LADDER.replace("MODE", "act").replace('since = "ledger.idle_s"', ""))
    passed(rig, 1)
    later(rig, 4000)
    rig.hub.get(RuleService).step()
    assert isinstance(rig.clock, ShiftedClock)
    rig.clock.later_s -= 3000
    rig.hub.get(RuleService).step()
    assert not firings(rig)


def test_an_id_used_again_is_another_subject(rig: Rig) -> None:
    """The ladder of a run ends with it: job 7 started anew begins at the first step."""
    write(rig, LADDER.replace("MODE", "act"))
    passed(rig, 1)
    begin = NOW + 100
    ended = record(7, "alice", end=begin - 50, elapsed_s=begin - 50 - HOUR, state="CANCELLED")
    upsert_jobs(rig.store, [ended, record(7, "alice", **{**OPEN, "start": begin, "submit": begin - 5})])
    later(rig, 300)
    rig.hub.get(RuleService).step()
    assert [subject for _, subject, *_ in firings(rig)] == [RUN]


def test_budgets_hold_steps_back(rig: Rig) -> None:
    """A user's budget of one step lets the second wait until a day has gone by."""
    text = LADDER.replace("MODE", "act").replace("[[do]]", "[budget]\nuser_per_day = 1\n[[do]]", 1)
    write(rig, text)
    passed(rig, 12, 480)
    assert [step for *_, step, _ in firings(rig)] == [1]
    assert rig.hub.get(RuleService).figures.left["idle"] == {"budget of the user": 1}


@pytest.mark.parametrize(
    ("line", "why"), [('quiet_hours = "00:00-24:00"', "quiet hours"), ("expires = 2000-01-01", "expired")]
)
def test_a_rule_rests(rig: Rig, line: str, why: str) -> None:
    """In quiet hours and after its last day it does nothing, and says why."""
    write(rig, line + LADDER.replace("MODE", "act"))
    passed(rig, 1)
    assert not firings(rig)
    assert rig.hub.get(RuleService).figures.left["idle"] == {why: 1}


def test_a_rule_of_events_sees_only_their_subjects(rig: Rig) -> None:
    """Of two running jobs the one that has just started is touched, once."""
    write(rig, 'on = ["job.started"]\nwhere = "job.gpus >= 1"\n[[do]]\naction = "comment"\ntext = "seen"\n', "start")
    passed(rig, 1)
    upsert_jobs(rig.store, [record(11, "bob", "proj2", **{**OPEN, "start": NOW, "submit": NOW})])
    passed(rig, 3, 60)
    assert [subject for _, subject, *_ in firings(rig)] == [f"gw/11@{NOW}"]


def test_one_bad_rule_leaves_the_others(rig: Rig) -> None:
    """A typo is an error of its file alone."""
    write(rig, LADDER.replace("MODE", "observe"))
    write(rig, LADDER.replace("MODE", "act").replace("idle_s >=", "idel_s >="), "typo")
    passed(rig, 1)
    assert firings(rig) == [("idle", RUN, 1, False)]
    assert len(rig.hub.get(RuleService).rules.errors) == 1


def test_nothing_is_done_without_rules(rig: Rig) -> None:
    """By default no rule is there, and a pass does nothing."""
    assert rig.hub.get(RuleService).step() == []
    assert not firings(rig)
    assert isinstance(rig.hub.get(RuleService), RuleService)


def ask(rig: Rig, uid: int, target: str) -> Any:
    answer = rig.get(uid, target)
    return answer.json if answer.status == 200 else answer.status


def question(rig: Rig, uid: int, target: str, **more: Any) -> Any:
    """Send a rule with a question; return the status and the answer."""
    body = json.dumps({"name": "idle", "text": LADDER.replace("MODE", "observe"), **more}).encode()
    answer = rig.post(body, uid=uid, target=target)
    return answer.status, answer.json


def test_rules_are_for_operators(rig: Rig) -> None:
    """A user gets none of the three routes."""
    assert rig.get(ALICE, "/v1/rules").status == 403
    assert question(rig, ALICE, "/v1/rules/look")[0] == 403
    assert question(rig, ALICE, "/v1/rules/replay", start=HOUR, end=NOW)[0] == 403


def test_the_list_says_what_rules_did(rig: Rig) -> None:
    """Name, mode, how many match now, steps of the last 30 days; files with an error beside."""
    write(rig, LADDER.replace("MODE", "observe"))
    write(rig, "where = 1", "bad")
    passed(rig, 1)
    found = rig.get(OPER, "/v1/rules").json
    row = found["rules"][0]
    assert (row["name"], row["mode"], row["matching"], row["steps_30d"], row["recorded_30d"]) == (
        "idle",
        "observe",
        1,
        1,
        1,
    )
    assert "bad.toml" in found["errors"][0]


def test_a_look_shows_each_part_with_its_facts(rig: Rig) -> None:
    """Of job 7: the part holds by its facts and the first step is due; nothing is recorded by looking."""
    status, found = question(rig, OPER, "/v1/rules/look", job="7")
    assert status == 200, found
    job = found["found"][0]
    assert (job["matches"], job["due"], job["held_s"], job["exempt"]) == (True, "notify", 2000.0, "")
    part = {"text": "ledger.idle_s >= 600.0", "value": True, "facts": {"ledger.idle_s": 2000.0}}
    assert job["parts"] == [part]
    assert not firings(rig)


def test_a_look_at_what_is_not_known(rig: Rig) -> None:
    """Job 9's node is silent: the part is neither true nor false; of a job that is not there nothing is found."""
    found = question(rig, OPER, "/v1/rules/look", job="9")[1]["found"][0]
    assert (found["matches"], found["parts"][0]["value"]) == (False, None)
    assert question(rig, OPER, "/v1/rules/look", job="99")[0] == 404


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"[]", b"[" * 60_000, b" " * 600_000, b'{"name": "x"}', b'{"name": "x", "text": "where = 1"}'],
    ids=range(7),
)
def test_a_bad_question_is_refused(rig: Rig, body: bytes) -> None:
    """Neither JSON nor a question nor a rule: one line, status 400."""
    answer = rig.post(body, uid=OPER, target="/v1/rules/look")
    assert answer.status == 400
    assert "\n" not in answer.json["error"]


def test_a_replay_says_whom_a_rule_would_have_hit(rig: Rig) -> None:
    """Job 7 idles to its end: each delay up to its length hits it, rightly; job 8 is never hit."""
    later(rig, 6000)
    end = NOW + 6000
    ended: dict[str, Any] = {"end": end, "elapsed_s": end - HOUR, "state": "COMPLETED"}
    upsert_jobs(rig.store, [record(7, "alice", **ended), record(8, "bob", "proj2", **ended)])
    later(rig, 3600)
    status, found = question(rig, OPER, "/v1/rules/replay", start=HOUR - 60, end=end + 60)
    assert status == 200, found
    rows = {row["after_s"]: row for row in found["rows"]}
    assert (rows[1800]["jobs"], rows[1800]["wrong"], rows[1800]["step"]) == (1, 0, "notify")
    assert rows[3600]["precision"] == rows[3600]["recall"] == 1.0
    assert rows[14400]["jobs"] == 0
    assert found["users"][0]["user"] == "alice"


def test_a_rule_about_the_model_in_use(rig: Rig) -> None:
    """It is touched as model/NAME, by no run and no user; with no model in use nothing matches, and a look says so."""
    text = 'mode = "act"\nabout = "model"\nwhere = "model.judged_7d == 0 && model.age_s > 60.0"\n'
    text += '[[do]]\naction = "notify"\nto = "staff"\nsubject = "Model {model.name}"\ntext = "x"\n'
    text += '[[do]]\naction = "rollback"\n'
    write(rig, text, "drift")
    rig.hub.get(RuleService).step()
    assert not firings(rig)
    rig.hub.get(RuleService)._model = lambda: ModelMoment("night", "cafe", NOW - 3600)
    passed(rig, 3, 60)
    assert firings(rig) == [("drift", "model/night", step, True) for step in (1, 2)]
    assert intents(rig) == [("notify", "model/night"), ("rollback", "model/night")]
    rows = rig.hub.get(ActionParts).store.listed(ActionQuestion(start=0, end=2**40))
    assert {(row.run, row.user, row.options.get("subject")) for row in rows} == {
        (None, "", "Model night"),
        (None, "", None),
    }

"""Verdicts over real HTTP: who may send them, what is refused, and that shadow mode tells users nothing anywhere."""

import json
import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from msgspec import to_builtins
from tests.integration.hub.rig import Answer, Rig
from tests.unit.advisor.verdicts import verdict

from gpuwaste.advice.verdicts.verdict_batch import encode_verdict
from gpuwaste.advice.verdicts.verdict_score import ScoreDocument
from gpuwaste.advice.verdicts.verdict_store import COUNT_EVERY_S, VerdictCounts, VerdictStore
from gpuwaste.advice.verdicts.verdict_types import JudgedVerdict, VerdictsDocument
from gpuwaste.core.typed import convert
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.roles import Roles
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.net.batch import Batch, Envelope, encode_batch, json_line
from gpuwaste.net.request_signing import Caller
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import AGENT_UID

ALICE, BOB, CAROL, OPER = 1001, 1002, 1003, 1004
TARGET = "/v1/verdicts"
HIDDEN = "likely to fail"  # what shadow verdicts would have said


def body(*verdicts: Verdict, cluster: str = "gw", protocol: int = 1) -> bytes:
    """Return the body of a batch from an advisor on the controller's host."""
    rows = tuple(encode_verdict(row) for row in verdicts)
    return encode_batch(Envelope(cluster, "ctl", "boot", "1", protocol), Batch(rows, "b1"))


def now() -> int:
    return int(time.time())


def said(number: int, **more: Any) -> Verdict:
    """Return a verdict of a minute ago."""
    return verdict(number, at_utc_us=(now() - 60) * 10**6 + number, **more)


def run(job: int, verdict_id: str, user: str = "alice", account: str = "proj1") -> JobRecord:
    start = now() - 50
    return JobRecord(
        "gw", job, start, printed_id=str(job), user=user, account=account, name="train", start=start, end=start + 30,
        elapsed_s=30, state="FAILED", verdict_id=verdict_id, gpus=1, alloc_tres="gres/gpu=1",
    )  # fmt: skip


def post(hub: Rig, data: bytes, uid: int = AGENT_UID) -> Answer:
    return hub.post(data, uid, target=TARGET)


def taken(hub: Rig) -> int:
    return hub.store.counts()["verdicts"]


def test_a_batch_is_stored_and_acknowledged(hub: Rig) -> None:
    """The acknowledgement is signed; the same batch again is acknowledged and changes nothing."""
    batch = body(said(1), said(2, action="reject"))
    for _ in range(2):
        answer = post(hub, batch)
        assert (answer.status, answer.json) == (200, {"protocol": 1, "batch_id": "b1", "accepted": 2, "rejected": []})
        assert answer.headers["gpuwaste-ack"].startswith("ack:900:")
    assert taken(hub) == 2
    metrics = hub.send("GET", "/metrics").body.decode()
    assert 'gpuwaste_hub_verdicts_total{action="reject"} 1.0' in metrics
    assert 'gpuwaste_hub_verdicts_total{action="warn"} 1.0' in metrics


def test_another_user_may_not_send(hub: Rig) -> None:
    """A user, an operator, a replayed credential: nothing is stored, and the answer says why."""
    batch = body(said(1))
    for uid in (ALICE, OPER):
        refused = post(hub, batch, uid)
        assert (refused.status, "may not send verdicts" in refused.json["error"]) == (403, True)
    used = hub.credential(AGENT_UID, "POST", TARGET, batch)
    assert hub.send("POST", TARGET, batch, {"Authorization": used}).status == 200
    changed = body(said(2))
    for credential, data in ((used, batch), (used, changed), (hub.credential(AGENT_UID, "POST", TARGET), changed)):
        assert hub.send("POST", TARGET, data, {"Authorization": credential}).status == 401
    assert hub.send("POST", TARGET, batch).status == 401
    assert taken(hub) == 1


def test_a_credential_for_hours_is_none_for_verdicts(hub: Rig) -> None:
    """It is bound to its path."""
    batch = body(said(1))
    credential = hub.credential(AGENT_UID, "POST", "/v1/hours", batch)
    assert hub.send("POST", TARGET, batch, {"Authorization": credential}).status == 401


def test_a_site_without_munge_knows_its_advisor_by_a_token_of_his_name(hub: Rig) -> None:
    """A node's own token, or a user's, is not enough."""
    site = ClusterFacts(hub.slurm, hub.clock)
    identity = Identity({}, Roles(hub.slurm, hub.clock), site, None, agent_user="gpuwaste")
    assert identity.is_advisor(Caller(None, "", "token", "gpuwaste"))
    assert identity.scope(Caller(None, "", "token", "gpuwaste")).agent
    for name in ("gpu1", "alice", ""):
        assert not identity.is_advisor(Caller(None, "", "token", name))
    assert not Identity({}, Roles(hub.slurm, hub.clock), site, None).is_advisor(Caller(None, "", "token", ""))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: row | {"action": "explode"}, "action"),
        (lambda row: row | {"id": "short"}, "id"),
        (lambda row: row | {"cluster": "other"}, "is not the batch's gw"),
        (lambda row: row | {"at_utc_us": (now() + 10 * 86400) * 10**6}, "clock"),
        (lambda row: row | {"at_utc_us": 2**62}, "clock"),
        (lambda row: row | {"at_utc_us": 5}, "clock"),
        (lambda row: row | {"lines": ["x" * 4000] * 60}, "bytes"),
        (lambda row: [row], "not a JSON object"),
    ],
)
def test_a_bad_row_is_named_by_line_and_good_ones_are_taken(
    hub: Rig, change: Callable[[dict[str, Any]], Any], words: str
) -> None:
    """Each reason is one line of words; the rows before and after it are stored."""
    lines = body(said(1), said(2), said(3)).split(b"\n")
    lines[2] = json_line(change(json.loads(lines[2])))
    answer = post(hub, b"\n".join(lines))
    assert (answer.status, answer.json["accepted"]) == (200, 2)
    (rejected,) = answer.json["rejected"]
    assert (rejected["line"], words in rejected["reason"], "\n" in rejected["reason"]) == (3, True, False)
    assert taken(hub) == 2
    assert hub.get(OPER, f"{TARGET}/score").status == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 400),
        (b"\x00\xff\xfe" * 1000, 400),
        (b'{"protocol":"1"}\n', 400),
        (body(cluster="other"), 400),
        (body(protocol=9), 426),
        (b"x" * (1024 * 1024 + 1), 413),
    ],
)
def test_a_body_that_cannot_be_is_refused(hub: Rig, data: bytes, status: int) -> None:
    """Nothing, garbage, another cluster, another protocol, more than 1 MiB: words, and nothing is stored."""
    answer = post(hub, data)
    assert (answer.status, bool(answer.json["error"])) == (status, True)
    assert taken(hub) == 0


def test_garbage_after_the_envelope_is_rejected_line_by_line(hub: Rig) -> None:
    """Binary, half a line, a NaN, deep nesting: each line is named, none is stored."""
    deep = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
    row = json.dumps({**said(1).to_json(), "p": {"failure": float("nan")}}).encode()
    answer = post(hub, b"\n".join([body().rstrip(), b"\xff\xfe\x00", b'{"id":"', deep, row, b"7"]))
    assert (answer.status, [r["line"] for r in answer.json["rejected"]]) == (200, [2, 3, 4, 5, 6])
    assert taken(hub) == 0


@pytest.fixture(scope="module")
def audited(shared_hub: Rig) -> Rig:
    """Return the hub of the tests that change nothing in it."""
    return with_verdicts(shared_hub)


def with_verdicts(hub: Rig) -> Rig:
    """Tell a hub of alice's and bob's jobs: one warned, one rejected, one annotated, and what shadow mode kept back."""
    rows = [
        said(1, lines=("warned you",)),
        said(2, action="pass", mode="shadow", held="shadow", lines=(HIDDEN,)),
        said(3, action="reject", lines=("refused you",)),
        said(4, action="pass", would_be="reject", held="random", sampled=True, lines=(HIDDEN,)),
        said(5, user="bob", account="proj2", lines=("warned bob",)),
        said(6, user="bob", account="proj2", action="pass", would_be="warn", held="floor", lines=(HIDDEN,)),
    ]
    assert post(hub, body(*rows)).json["accepted"] == 6
    upsert_jobs(hub.store, [run(10 + n, rows[n - 1].id) for n in (1, 2, 4)])
    upsert_jobs(hub.store, [run(10 + n, rows[n - 1].id, "bob", "proj2") for n in (5, 6)])
    return hub


def ids(answer: Answer) -> list[int]:
    return sorted(int(row["id"]) for row in answer.json["verdicts"])


def test_a_user_lists_what_was_said_to_him(audited: Rig) -> None:
    """His own warnings and rejects with how the jobs ended; nothing of the policy, of shadow mode, or of others."""
    mine = audited.get(ALICE, TARGET)
    assert ids(mine) == [1, 3]
    rows = {int(row["id"]): row for row in mine.json["verdicts"]}
    assert (rows[1]["job_ids"], rows[1]["states"], rows[3]["stands"]) == (["11"], ["FAILED"], "rejected")
    hidden = {"policy", "mode", "would_be", "held", "sampled", "p", "triggers", "quantiles", "reasons", "model_hash"}
    assert not hidden & set(rows[1])
    assert ids(audited.get(ALICE, f"{TARGET}?user=alice&policy=site&limit=1")) == [3]
    assert ids(audited.get(BOB, TARGET)) == [5]


def test_policies_cannot_be_guessed_by_asking_for_them(audited: Rig) -> None:
    """The filter is an operator's; a user gets the same answer whatever he names."""
    answers = [audited.get(ALICE, f"{TARGET}?policy={name}").json["verdicts"] for name in ("site", "none")]
    assert answers[0] == answers[1] != []


def test_another_user_s_verdicts_look_like_those_of_nobody(audited: Rig) -> None:
    """Byte for byte the answer for a user that does not exist."""
    nothing = audited.get(BOB, f"{TARGET}?user=nobody")
    assert nothing.status == 404
    for target in (f"{TARGET}?user=alice", f"{TARGET}?user=alice&start=0", "/v1/jobs/11"):
        answer = audited.get(BOB, target)
        assert (answer.status, answer.body) == (nothing.status, nothing.body), target


def test_a_coordinator_lists_what_was_said_in_his_accounts(audited: Rig) -> None:
    """Carol coordinates proj1: what alice was told there, and no more than alice knows of it."""
    assert ids(audited.get(CAROL, TARGET)) == [1, 3]
    assert ids(audited.get(CAROL, f"{TARGET}?user=alice")) == [1, 3]
    assert ids(audited.get(CAROL, f"{TARGET}?user=bob")) == []
    assert HIDDEN not in audited.get(CAROL, TARGET).body.decode()


def test_an_operator_lists_everything(audited: Rig) -> None:
    """With policy, mode, probabilities and whether it was right; filtered by user, policy, time."""
    rows = {int(row["id"]): row for row in audited.get(OPER, TARGET).json["verdicts"]}
    assert sorted(rows) == [1, 2, 3, 4, 5, 6]
    assert (rows[2]["held"], rows[2]["would_be"], rows[2]["hit"], rows[2]["p"]) == (
        "shadow",
        "warn",
        True,
        {"failure": 0.75},
    )
    assert rows[2]["quantiles"] == {"walltime": {"0.5": 60.0}}
    assert ids(audited.get(OPER, f"{TARGET}?user=bob")) == [5, 6]
    assert ids(audited.get(OPER, f"{TARGET}?policy=none")) == []
    assert ids(audited.get(OPER, f"{TARGET}?end={now() - 3600}")) == []
    assert ids(audited.get(OPER, f"{TARGET}?limit=2")) == [5, 6]


def test_verdicts_and_score_are_as_the_api_declares_them(audited: Rig) -> None:
    """What is answered reads as the declared types; an operator's row has each declared field and no other."""
    for uid in (ALICE, CAROL, OPER):
        convert(audited.get(uid, TARGET).json, VerdictsDocument)
    rows = audited.get(OPER, TARGET).json["verdicts"]
    assert {name for row in rows for name in row} == {part.name for part in fields(JudgedVerdict)}
    score = audited.get(OPER, f"{TARGET}/score").json
    assert to_builtins(convert(score, ScoreDocument)) == score


def test_the_score_is_for_operators_and_advisors(audited: Rig) -> None:
    """A user and a coordinator get 403, the advisors' user the standing of each policy."""
    for uid in (ALICE, CAROL):
        assert audited.get(uid, f"{TARGET}/score").status == 403
    for uid in (OPER, AGENT_UID):
        assert audited.get(uid, f"{TARGET}/score").json["standing"] == {"site": {"precision": 1.0, "n": 5}}
    assert audited.get(OPER, f"{TARGET}/score?since={now() + 60}").json["standing"] == {}


def test_the_agents_user_lists_no_verdicts(audited: Rig) -> None:
    """He sends them and reads their score; whom they were told is not his to see."""
    assert ids(audited.get(AGENT_UID, TARGET)) == []


def test_a_job_has_what_was_said_of_it(audited: Rig) -> None:
    """Its user reads the same lines later; of a shadow verdict only an operator does, marked as not said."""
    assert [row["lines"] for row in audited.get(ALICE, "/v1/jobs/11").json["advice"]] == [["warned you"]]
    assert set(audited.get(ALICE, "/v1/jobs/11").json["advice"][0]) == {"at", "op", "action", "lines", "p"}
    assert audited.get(ALICE, "/v1/jobs/12").json["advice"] == []
    (hidden,) = audited.get(OPER, "/v1/jobs/12").json["advice"]
    assert (hidden["said"], hidden["lines"], hidden["would_be"], hidden["held"]) == (False, [HIDDEN], "warn", "shadow")


def test_the_owner_s_view_hides_from_staff_what_the_owner_was_not_told(audited: Rig) -> None:
    """What an END mail is made from: an operator who asks as alice reads what alice reads, but for the second."""
    for job in (11, 12):
        shown = audited.get(OPER, f"/v1/jobs/{job}?owner=alice").json
        own = audited.get(ALICE, f"/v1/jobs/{job}").json
        assert shown | {"generated": 0} == own | {"generated": 0}
    assert audited.get(OPER, "/v1/jobs/12?owner=oper").status == 404


def test_a_modification_is_shown_with_its_job(hub: Rig) -> None:
    """By the job's number, beside what was said at its submission, in the order of time."""
    audited = with_verdicts(hub)
    change = said(7, op="modify", run_job_id=11, lines=("warned again",))
    assert post(audited, body(change)).json["accepted"] == 1
    advice = audited.get(ALICE, "/v1/jobs/11").json["advice"]
    assert [(row["op"], row["lines"]) for row in advice] == [("submit", ["warned you"]), ("modify", ["warned again"])]


def test_a_token_of_another_user_s_verdict_tells_nothing(hub: Rig) -> None:
    """A comment that was copied by hand to alice's job does not show her what was said to bob."""
    audited = with_verdicts(hub)
    upsert_jobs(audited.store, [replace(run(20, said(5).id), user="alice")])
    assert audited.get(ALICE, "/v1/jobs/20").json["advice"] == []


def test_shadow_mode_leaks_through_no_route(audited: Rig) -> None:
    """Whatever alice, bob, carol or a scrape may read, no word of a verdict that was not said is in it."""
    targets = (
        TARGET,
        f"{TARGET}?start=0",
        f"{TARGET}/score",
        "/v1/report",
        f"/v1/report?start=0&end={now()}",
        "/v1/top",
        "/v1/history",
        "/v1/history/snapshot",
        *(f"/v1/jobs/{job}" for job in range(11, 17)),
        "/v1/health",
    )
    for uid in (ALICE, BOB, CAROL):
        for target in targets:
            told = audited.get(uid, target).body.decode()
            for word in (HIDDEN, 'shadow"', 'random"', 'floor"', said(2).id, said(4).id, said(6).id):
                assert word not in told, (uid, target, word)
    scraped = audited.send("GET", "/metrics").body.decode()
    assert not any(word in scraped for word in (HIDDEN, "alice", "bob", "site", said(2).id))


def test_history_and_snapshot_are_not_for_users(audited: Rig) -> None:
    """403, as for the history itself; and while it is not read yet, 503 with a time to wait for the advisor."""
    assert audited.get(ALICE, "/v1/history/snapshot").status == 403
    waiting = audited.get(AGENT_UID, "/v1/history/snapshot")
    assert (waiting.status, waiting.headers["retry-after"]) == (503, "10")


def test_verdicts_are_counted_now_and_then(hub: Rig) -> None:
    """What a scrape shows is counted at its time, and not with each import."""
    audited = with_verdicts(hub)
    clock = FakeClock()
    counts = VerdictCounts(VerdictStore(audited.store, audited.clock), clock)
    counts.step()
    first = sum(counts.counts.values())
    assert first == taken(audited) > 0
    post(audited, body(said(9)))
    counts.step()
    assert sum(counts.counts.values()) == first
    clock.advance(COUNT_EVERY_S + 1)
    counts.step()
    assert sum(counts.counts.values()) == first + 1

"""Actions over HTTP: who may read, decide, stop and take them, each step an event, and what is refused."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_service import ActionService
from gpuwaste.act.actions.action_types import ActionEntry, action_id
from gpuwaste.act.events.event_service import EventService
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.hub.admission_control import AdmissionLimits
from gpuwaste.hub.hub_ports import ServiceLimits
from gpuwaste.hub.retention import TableRetention
from gpuwaste.hub.roles import Roles
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.clocks import StandingClock
from gpuwaste.testing.mail_server import running_mail_server

OPER, ALICE, ACTOR = 1004, 1001, 4711
RUN = RunKey("gw", 7, 1_700_000_000)


def intent(kind: str = "cancel", unique: str = "1", **other: Any) -> ActionEntry:
    """Return an intent about a run of alice's."""
    now = int(time.time())
    known = ActionEntry(
        id=action_id("idle", kind, str(RUN), unique), rule="", rule_hash="", kind=kind, subject=str(RUN),
        cluster=RUN.cluster, job_id=RUN.job_id, start=RUN.start, user="alice", account="proj1", facts="{}",
        approve="none", decided=now, expires=now + 600, status="intended", since=now,
    )  # fmt: skip
    return structs.replace(known, **other)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Return a hub that knows the actor's user."""
    with running_hub(tmp_path) as found:
        found.hub.get(ActionService).actor_uid = ACTOR
        yield found


def _ask(rig: Rig, uid: int, target: str, body: object = None) -> tuple[int, Any]:
    answer = rig.post(json.dumps(body).encode(), uid, target=target) if body is not None else rig.get(uid, target)
    return answer.status, answer.json


def test_an_intent_is_taken_once(rig: Rig) -> None:
    """The same id again adds nothing; what cannot be done is left out; each new one is an event."""
    manager = rig.hub.get(ActionParts).manager
    good = intent()
    bad = [
        intent("explode", "2"),
        intent(unique="3", user=""),
        intent("comment", "4"),
        intent(unique="5", facts="x" * 40_000),
    ]
    assert manager.intend([good, *bad]) == [good.id]
    assert manager.intend([good, good]) == []
    told = [event for event in rig.hub.get(EventService).store.page(0, 100).events if event.kind.startswith("action.")]
    assert [(event.kind, getattr(event, "run", None)) for event in told] == [("action.intended", RUN)]


def test_who_may_do_what(rig: Rig) -> None:
    """Users read nothing, operators read and decide, staff read only, nobody but the actor takes."""
    one = intent(approve="person")
    rig.hub.get(ActionParts).manager.intend([one])
    assert _ask(rig, ALICE, "/v1/actions")[0] == 403
    assert _ask(rig, ALICE, f"/v1/actions/{one.id}/approve", {})[0] == 403
    assert _ask(rig, ALICE, "/v1/actions/stop", {"stop": True})[0] == 403
    assert [row["id"] for row in _ask(rig, OPER, "/v1/actions")[1]["actions"]] == [one.id]
    claim = {"actor": "a", "kinds": ["cancel"]}
    assert _ask(rig, OPER, "/v1/actions/claim", claim)[0] == 403
    assert _ask(rig, ACTOR, "/v1/actions/claim", claim)[1]["action"] is None
    rig.hub.get(Roles).set_staff(["staff"])
    rig.hub.get(Roles)._groups_of = lambda _: frozenset({"staff"})
    assert _ask(rig, ALICE, "/v1/actions")[0] == 200
    assert _ask(rig, ALICE, f"/v1/actions/{one.id[:8]}/approve", {})[0] == 403
    assert _ask(rig, OPER, f"/v1/actions/{one.id[:8]}/approve", {})[1]["action"]["person"] == "oper"
    assert _ask(rig, OPER, f"/v1/actions/{one.id}/approve", {})[0] == 409
    lent = _ask(rig, ACTOR, "/v1/actions/claim", claim)[1]
    assert lent["action"]["id"] == one.id
    assert _ask(rig, ACTOR, "/v1/actions/claim", {**claim, "actor": "b"})[1]["holder"] == "a"


def test_the_lease_lasts_as_long_as_the_answer_says(tmp_path: Path) -> None:
    """A step renews it in full; a claim says what is left of it: an actor counts on that while it acts."""
    clock = StandingClock(1_700_000_000)
    with running_hub(tmp_path, clock=clock) as rig:
        rig.hub.get(ActionService).actor_uid = ACTOR
        one = intent(decided=1_700_000_000, expires=1_700_000_600)
        rig.hub.get(ActionParts).manager.intend([one])
        claim = {"actor": "a", "kinds": ["cancel"]}
        assert _ask(rig, ACTOR, "/v1/actions/claim", claim)[1]["lease_s"] == 60
        clock.now_s += 25
        assert _ask(rig, ACTOR, "/v1/actions/claim", claim)[1]["lease_s"] == 35
        assert (
            _ask(rig, ACTOR, f"/v1/actions/{one.id}/step", {"actor": "a", "status": "sent", "plan": {}})[1]["lease_s"]
            == 60
        )
        clock.now_s += 50
        assert _ask(rig, ACTOR, "/v1/actions/claim", {**claim, "actor": "b"})[1]["holder"] == "a"


def test_steps_that_are_not_taken(rig: Rig) -> None:
    """Not approved, over, another's lease, the hub's own kind, stopped: the row stays as it is."""
    held, mail = intent(approve="person"), intent("notify", options={"subject": "s", "text": "t"})
    rig.hub.get(ActionParts).manager.intend([held, mail])
    sent = {"actor": "a", "status": "sent", "plan": {}}
    assert not _ask(rig, ACTOR, f"/v1/actions/{held.id}/step", sent)[1]["taken"]
    assert not _ask(rig, ACTOR, f"/v1/actions/{mail.id}/step", sent)[1]["taken"]
    assert _ask(rig, OPER, f"/v1/actions/{held.id}/approve", {})[0] == 200
    assert not _ask(rig, ACTOR, f"/v1/actions/{held.id}/step", {**sent, "actor": "b"})[1]["taken"]
    assert _ask(rig, OPER, "/v1/actions/stop", {"stop": True})[1]["stopped"]
    assert "gpuwaste rules resume" in _ask(rig, ACTOR, f"/v1/actions/{held.id}/step", sent)[1]["reason"]
    assert _ask(rig, OPER, "/v1/actions/stop", {"stop": False})[1]["stopped"] is None
    assert _ask(rig, ACTOR, f"/v1/actions/{held.id}/step", sent)[1]["taken"]
    assert _ask(rig, ACTOR, f"/v1/actions/{held.id}/step", {"actor": "a", "status": "confirmed"})[1]["taken"]
    assert not _ask(rig, ACTOR, f"/v1/actions/{held.id}/step", sent)[1]["taken"]
    kinds = [
        event.kind for event in rig.hub.get(EventService).store.page(0, 100).events if event.kind.startswith("action.")
    ]
    assert kinds == ["action.intended", "action.intended", "action.approved", "action.sent", "action.confirmed"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff\xfe", b'{"actor":"","kinds":[]}', b'{"actor":"a","kinds":3}', b"[" * 9000]
)
def test_bad_bodies(rig: Rig, body: bytes) -> None:
    """What is no claim is refused in one line."""
    answer = rig.post(body, ACTOR, target="/v1/actions/claim")
    assert answer.status == 400
    assert "\n" not in answer.json["error"]


def test_bodies_of_whoever_sends_them_are_bounded_in_all(tmp_path: Path) -> None:
    """Whoever claims to be the actor has proven nothing until the body is read: bodies in memory have one bound."""
    with running_hub(tmp_path, limits=ServiceLimits(gate=AdmissionLimits(held_bytes=200))) as rig:
        rig.hub.get(ActionService).actor_uid = ACTOR
        claim: dict[str, Any] = {"actor": "a", "kinds": ["cancel"]}
        assert _ask(rig, ACTOR, "/v1/actions/claim", claim)[0] == 200
        assert _ask(rig, ACTOR, "/v1/actions/claim", {**claim, "kinds": ["x" * 60] * 4})[0] == 503


def test_odd_ids(rig: Rig) -> None:
    """An id that is none, or is nobody's, is refused."""
    assert _ask(rig, OPER, "/v1/actions/xyz")[0] == 400
    assert _ask(rig, OPER, f"/v1/actions/{'0' * 64}")[0] == 404
    assert _ask(rig, OPER, "/v1/actions?status=gone")[0] == 400


def test_mail_is_sent_once_and_breaks_no_header(tmp_path: Path) -> None:
    """A rule's mail goes out over real SMTP; hostile words in it are escaped; a second turn sends nothing."""
    with running_mail_server() as server:
        notify = NotifyConfig(
            smtp_host="127.0.0.1",
            smtp_port=server.port,
            sender="gw@example.org",
            address="{user}@example.org",
            dry_run=False,
        )
        with running_hub(tmp_path, notify=notify) as rig:
            options = {"subject": "Your job \u202e is idle", "text": "line\n.\n\nFrom: x"}
            one = intent("notify", options=options)
            manager, mail = rig.hub.get(ActionParts).manager, rig.hub.get(ActionParts)._mail
            assert manager.intend([one]) == [one.id]
            mail.send_due()
            mail.send_due()
            row = rig.hub.get(ActionParts).store.found(one.id)[0]
            assert row.status == "confirmed", row
            (mail_sent,) = server.received
            assert mail_sent.to == ("alice@example.org",)
            assert mail_sent.message["Subject"] == "Your job \\u202e is idle"
            assert mail_sent.text.splitlines() == ["line", ".", "", "From: x"]


def test_mail_waits_while_the_server_is_down(tmp_path: Path) -> None:
    """Nothing was sent, so it is tried again; without a server at all the action is moot."""
    notify = NotifyConfig(
        smtp_host="127.0.0.1", smtp_port=1, sender="gw@example.org", address="{user}@example.org", dry_run=False
    )
    with running_hub(tmp_path / "a", notify=notify) as rig:
        one = intent("notify", options={"subject": "s", "text": "t"})
        rig.hub.get(ActionParts).manager.intend([one])
        rig.hub.get(ActionParts)._mail.send_due()
        row = rig.hub.get(ActionParts).store.found(one.id)[0]
        assert (row.status, "mail server" in row.reason) == ("intended", True)
    with running_hub(tmp_path / "b") as rig:
        rig.hub.get(ActionParts).manager.intend([one])
        rig.hub.get(ActionParts)._mail.send_due()
        assert rig.hub.get(ActionParts).store.found(one.id)[0].status == "moot"


def test_mail_waits_while_addresses_cannot_be_looked_up(tmp_path: Path) -> None:
    """The file is being written anew: the warning before a cancellation is sent a moment later, not lost."""
    addresses = tmp_path / "addresses"
    with running_mail_server() as server:
        notify = NotifyConfig(
            smtp_host="127.0.0.1", smtp_port=server.port, sender="gw@example.org", address_file=str(addresses),
            dry_run=False,
        )  # fmt: skip
        with running_hub(tmp_path / "hub", notify=notify) as rig:
            one = intent("notify", options={"subject": "s", "text": "t"})
            rig.hub.get(ActionParts).manager.intend([one])
            rig.hub.get(ActionParts)._mail.send_due()
            assert rig.hub.get(ActionParts).store.found(one.id)[0].status == "intended"
            addresses.write_text("alice alice@example.org\n")
            rig.hub.get(ActionParts)._mail.send_due()
            assert rig.hub.get(ActionParts).store.found(one.id)[0].status == "confirmed"


def test_a_reload_changes_how_long_actions_are_kept(rig: Rig) -> None:
    """With the verdicts, what rules did and what was said of running jobs again: the log says it is in force."""
    hub = rig.hub
    shorter = replace(hub.config, hub=replace(hub.config.hub, verdict_days=7))
    hub.reloader(lambda: shorter).reload()
    assert hub.get(TableRetention)._days == {"hub.verdict_days": 7, "notify.audit_days": 400}

"""ActionManager: from an intent to its end, each step once, and none after a stop or an expiry."""

import pytest
from msgspec.structs import replace

from gpuwaste.act.actions.action_manager import ActionManager
from gpuwaste.act.actions.action_store import ActionStore
from gpuwaste.act.actions.action_types import ActionEntry, ActionReport
from gpuwaste.store.database import MEMORY
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock

NOW = 1_700_000_000
SENT = ActionReport(actor="a", status="sent", plan={"job": "8"})
INTENT = ActionEntry(
    id="a" * 64, rule="idle", rule_hash="b" * 64, kind="cancel", subject="gw/8@100", cluster="gw", job_id=8, start=100,
    user="alice", facts="{}", approve="none", decided=NOW, expires=NOW + 900, status="intended", since=NOW,
)  # fmt: skip


def made() -> tuple[ActionManager, FakeClock]:
    """Return a manager with one intended action that a pass of the rules has confirmed."""
    clock = FakeClock(NOW)
    manager = ActionManager(ActionStore(HubStore.open(MEMORY, clock), clock), 20)
    assert manager.intend([INTENT]) == [INTENT.id]
    manager.confirm({INTENT.id: ""}, 180)
    return manager, clock


def row(manager: ActionManager) -> ActionEntry:
    """Return the action as it is stored."""
    return manager.store.found(INTENT.id)[0]


def test_an_intent_is_taken_up_once() -> None:
    """Handed over again after a crash it is the same action."""
    manager, _ = made()
    assert manager.intend([INTENT, replace(INTENT, facts='{"x": 1}')]) == []
    assert row(manager).facts == "{}"


def test_what_was_sent_is_not_sent_again_after_it_expired() -> None:
    """The hub has the last word: the actor's clock may be behind."""
    manager, clock = made()
    assert manager.report(row(manager), SENT) == ""
    assert manager.report(row(manager), SENT) == ""  # looked at again after a kill, within its time
    clock.advance(901)
    assert manager.report(row(manager), SENT) == "the action has expired"
    assert manager.report(row(manager), ActionReport(actor="a", status="failed", reason="expired")) == ""
    assert (row(manager).status, row(manager).sends) == ("failed", 2)


def test_nothing_is_sent_after_a_stop() -> None:
    """Neither lent nor noted as sent, until the stop is lifted."""
    manager, _ = made()
    manager.stop(stop=True)
    assert manager.next(["cancel"]) is None
    assert "stopped" in manager.report(row(manager), SENT)
    mail = replace(INTENT, id="d" * 64, kind="notify", options={"subject": "s", "text": "t"})
    manager.intend([mail])
    assert "stopped" in manager.report(manager.store.found(mail.id)[0], SENT)
    manager.stop(stop=False)
    assert manager.next(["cancel"]) == row(manager)
    assert manager.report(row(manager), SENT) == ""


def test_a_person_decides_before_it_is_sent_and_in_time() -> None:
    """Refused is refused; what was sent, or has expired, is decided by nobody."""
    manager, clock = made()
    assert manager.decide(row(manager), "olga", approve=False)
    assert not manager.decide(row(manager), "olga", approve=True)
    assert "refused" in manager.report(row(manager), SENT)
    other = replace(INTENT, id="c" * 64, approve="person")
    manager.intend([other])
    found = manager.store.found(other.id)[0]
    assert manager.next(["cancel"]) is None
    assert manager.report(found, SENT) == "the action is intended"
    clock.advance(900)
    assert not manager.decide(found, "olga", approve=True)
    assert manager.expire() == 1


@pytest.mark.parametrize("approve", [False, True])
def test_after_a_start_nothing_is_lent_before_the_rules_have_passed(*, approve: bool) -> None:
    """A hub that begins anew knows of no pass; what no pass confirms, or an old one did, is not lent or sent either."""
    before, clock = made()
    manager = ActionManager(before.store, 20)
    if approve:
        assert manager.decide(row(manager), "olga", approve=True)
    assert manager.next(["cancel"]) is None
    assert "a pass of the rules" in manager.report(row(manager), SENT)
    manager.confirm({}, 180)
    assert manager.next(["cancel"]) is None
    manager.confirm({INTENT.id: ""}, 180)
    assert manager.next(["cancel"]) == row(manager)
    clock.advance(180)
    assert manager.next(["cancel"]) is None
    manager.confirm({INTENT.id: ""}, 180)
    clock.advance(-3600)
    assert manager.next(["cancel"]) is None
    clock.advance(3600)
    assert manager.report(row(manager), SENT) == ""
    assert ActionManager(before.store, 20).next(["cancel"]) == row(manager)  # sent: the actor ends it


def test_an_action_of_no_rule_needs_no_pass() -> None:
    """What somebody else wants done has no condition that could hold no more."""
    manager, _ = made()
    other = replace(INTENT, id="c" * 64, rule="", rule_hash="")
    manager.intend([other])
    manager.confirm({}, 180)
    found = manager.next(["cancel"])
    assert found is not None
    assert found.id == other.id
    assert manager.waiting() == [INTENT]
    assert manager.report(found, SENT) == ""


NOTICE = replace(INTENT, id="d" * 64, kind="notify", options={"subject": "s", "text": "t"})


def test_a_step_waits_until_its_warning_was_sent() -> None:
    """Neither lent nor noted as sent, and it says so; once the mail is accepted it is lent at once."""
    manager, clock = made()
    manager.intend([NOTICE])
    manager.confirm({INTENT.id: NOTICE.id}, 3600)
    assert manager.next(["cancel"]) is None
    assert "its warning: action dddddddddddd is intended" in manager.report(row(manager), SENT)
    mail = manager.store.found(NOTICE.id)[0]
    assert manager.report(mail, ActionReport(actor="hub", status="sent")) == ""
    assert manager.next(["cancel"]) is None
    assert manager.report(mail, ActionReport(actor="hub", status="confirmed")) == ""
    assert manager.next(["cancel"]) == row(manager)
    clock.advance(900)
    assert manager.expire() == 1
    assert row(manager).reason == "no actor took the action in time"


@pytest.mark.parametrize("end", ["failed", "moot", "refused", "expired", "not there"])
def test_a_step_whose_warning_was_not_sent_is_moot(end: str) -> None:
    """With the warning's own reason; whatever became of the mail, nobody is cancelled who was not told."""
    manager, clock = made()
    if end != "not there":
        manager.intend([replace(NOTICE, expires=NOW + 60)])
        mail = manager.store.found(NOTICE.id)[0]
    if end == "refused":
        assert manager.decide(mail, "olga", approve=False)
    elif end == "expired":
        clock.advance(60)
        assert manager.expire() == 1
    elif end in {"failed", "moot"}:
        assert manager.report(mail, ActionReport(actor="hub", status="sent")) == ""
        why = ActionReport(actor="hub", status="failed" if end == "failed" else "moot", reason="no such mailbox")
        assert manager.report(mail, why) == ""
    manager.confirm({INTENT.id: NOTICE.id}, 180)
    assert row(manager).status == "moot"
    assert row(manager).reason.startswith(f"its warning was not sent: action dddddddddddd is {end}")
    assert manager.next(["cancel"]) is None


def test_a_step_that_expired_says_that_it_waited_for_its_warning() -> None:
    """The mail server was down all the time."""
    manager, clock = made()
    manager.intend([replace(NOTICE, expires=NOW + 9000)])
    manager.confirm({INTENT.id: NOTICE.id}, 3600)
    clock.advance(900)
    assert manager.expire() == 1
    assert (
        row(manager).reason
        == "no actor took the action in time; it waits for its warning: action dddddddddddd is intended"
    )

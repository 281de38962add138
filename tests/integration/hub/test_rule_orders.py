"""Between a rule's decision and the actor: what is lent after an outage, a warning, an interruption, an edit."""

from typing import Any

import pytest
from tests.integration.hub import test_rules
from tests.integration.hub.rig import Rig
from tests.integration.hub.test_now import OPER
from tests.integration.hub.test_rules import LADDER, firings, later, passed, work, write

from gpuwaste.act.actions.action_manager import ActionManager
from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import ActionEntry, ActionQuestion, ActionReport
from gpuwaste.act.rules.rule_service import RuleService
from gpuwaste.testing.clocks import ShiftedClock

rig = test_rules.rig
CANCEL = """mode = "act"
where = "ledger.idle_s >= 600.0 && ledger.age_s < 1200.0"
valid = "12h"
approve = "none"
notify = "none"
[[do]]
after = "0s"
action = "cancel"
"""
APPROVED = CANCEL.replace('approve = "none"', 'approve = "person"')
WARNED = 'valid = "12h"\n' + LADDER.replace("MODE", "act")


def lent(rig: Rig) -> str:
    """Return the kind of the action that the actor would be lent, "" for none."""
    row = rig.hub.get(ActionParts).manager.next(["cancel", "comment"])
    return row.kind if row else ""


def rows(rig: Rig, kind: str) -> list[ActionEntry]:
    """Return the actions of a kind, the oldest first."""
    found = rig.hub.get(ActionParts).store.listed(ActionQuestion(start=0, end=2**40))
    return [row for row in reversed(found) if row.kind == kind]


def pause(rig: Rig, seconds: int) -> None:
    """Let time go by without passes and without agents."""
    assert isinstance(rig.clock, ShiftedClock)
    rig.clock.later_s += seconds


def mailed(rig: Rig) -> None:
    """Have the mail server accept what waits for it."""
    for row in rows(rig, "notify"):
        for status in ("sent", "confirmed"):
            report = ActionReport(actor="hub", status=status)
            assert row.status != "intended" or rig.hub.get(ActionParts).manager.report(row, report) == ""


def shown(rig: Rig, row: ActionEntry) -> Any:
    """Return what an operator is shown of an action."""
    return rig.get(OPER, f"/v1/actions/{row.id}").json["action"]


def test_after_an_outage_nothing_is_lent_until_it_is_known_to_hold(rig: Rig) -> None:
    """The hub was down for two hours: what it wanted before waits until the agents have sent, and says so."""
    write(rig, CANCEL)
    passed(rig)
    assert lent(rig) == "cancel"
    pause(rig, 7200)
    assert lent(rig) == ""
    manager = ActionManager(rig.hub.get(ActionParts).store, 20)  # as after a start
    assert manager.next(["cancel"]) is None
    passed(rig)  # what the agents know is two hours old
    assert lent(rig) == ""
    (row,) = rows(rig, "cancel")
    assert (row.status, "still holds" in shown(rig, row)["reason"]) == ("intended", True)
    passed(rig, 1, 120)
    assert lent(rig) == "cancel"
    assert shown(rig, row)["reason"] == ""


def test_nobody_is_cancelled_before_their_warning_was_sent(rig: Rig) -> None:
    """The mail waits for its server: the cancellation waits for the mail, and is lent once that is accepted."""
    write(rig, WARNED)
    passed(rig, 7, 480)
    (row,) = rows(rig, "cancel")
    assert lent(rig) == ""
    assert "waits for its warning" in shown(rig, row)["reason"]
    mailed(rig)
    assert lent(rig) == "cancel"


def test_a_warning_that_cannot_be_sent_ends_the_cancellation(rig: Rig) -> None:
    """Without a mail server the hub sends no mail; the later step is moot with that reason."""
    write(rig, WARNED)
    passed(rig)
    rig.hub.get(ActionParts)._mail.send_due()
    assert [row.status for row in rows(rig, "notify")] == ["moot"]
    passed(rig, 7, 480)
    (row,) = rows(rig, "cancel")
    assert (row.status, "smtp_host is not set" in shown(rig, row)["reason"]) == ("moot", True)


def test_who_went_back_to_work_is_warned_anew(rig: Rig) -> None:
    """Idle, warned, at work, idle again within the cooldown: the next step is the warning, not the cancellation."""
    write(rig, WARNED.replace("[[do]]", "[exempt]\ncoverage_below = 0.0\n[[do]]", 1))
    passed(rig)
    mailed(rig)
    work(rig)
    passed(rig)
    assert [step for *_, step, _ in firings(rig)] == [1]
    while len(firings(rig)) < 2:
        passed(rig, 1, 480)
    assert [step for *_, step, _ in firings(rig)] == [1, 1]
    passed(rig, 5, 480)
    assert [step for *_, step, _ in firings(rig)] == [1, 1, 2]
    assert lent(rig) == ""
    mailed(rig)
    assert lent(rig) == "cancel"


def test_an_edited_rule_withdraws_what_its_old_version_wanted(rig: Rig) -> None:
    """An approved cancellation of the old file is moot with the first pass of the new one."""
    write(rig, APPROVED)
    passed(rig)
    (row,) = rows(rig, "cancel")
    assert rig.hub.get(ActionParts).manager.decide(row, "oper", approve=True)
    write(rig, "expires = 2099-01-01\n" + APPROVED)
    passed(rig)
    assert [(one.status, one.reason) for one in rows(rig, "cancel")] == [
        ("moot", "the rule has changed"),
        ("intended", ""),
    ]


@pytest.mark.parametrize("others", [False, True])
def test_a_removed_rule_withdraws_what_it_wanted(rig: Rig, *, others: bool) -> None:
    """An approved cancellation is moot with the next pass, whether other rules are left or none."""
    write(rig, APPROVED)
    if others:
        write(rig, CANCEL.replace("idle_s >= 600.0", "idle_s >= 1e9"), "other")
    passed(rig)
    (row,) = rows(rig, "cancel")
    assert rig.hub.get(ActionParts).manager.decide(row, "oper", approve=True)
    (rig.directory / "rules.d" / "idle.toml").unlink()
    passed(rig)
    assert [(one.status, one.reason) for one in rows(rig, "cancel")] == [("moot", "the rule was removed")]


@pytest.mark.parametrize("how", ["refused", "no directory"])
def test_a_rule_that_cannot_be_read_withdraws_nothing(rig: Rig, how: str) -> None:
    """A typo, or a file system that is away, is no decision of the site: what was approved waits, and is not lent."""
    write(rig, CANCEL)
    passed(rig)
    assert lent(rig) == "cancel"
    if how == "refused":
        write(rig, CANCEL.replace("idle_s", "idel_s"))
    else:
        (rig.directory / "rules.d").rename(rig.directory / "away")
    passed(rig)
    assert [one.status for one in rows(rig, "cancel")] == ["intended"]
    pause(rig, 240)
    assert lent(rig) == ""


@pytest.mark.parametrize("restart", [False, True])
def test_a_rule_that_is_put_back_begins_with_a_new_warning(rig: Rig, *, restart: bool) -> None:
    """The same file, removed and put back: the warning of its first life is not taken for the one of its second."""
    write(rig, WARNED)
    passed(rig)
    mailed(rig)
    (rig.directory / "rules.d" / "idle.toml").unlink()
    write(rig, CANCEL.replace("idle_s >= 600.0", "idle_s >= 1e9"), "other")
    passed(rig)
    if restart:
        rig.hub.get(RuleService)._known = None
    write(rig, WARNED)
    passed(rig, 1, 60)
    assert [row.status for row in rows(rig, "notify")] == ["confirmed", "intended"]
    passed(rig, 7, 480)
    assert [row.status for row in rows(rig, "cancel")] == ["intended"]
    assert lent(rig) == ""
    mailed(rig)
    assert lent(rig) == "cancel"


def test_an_edit_does_not_reset_the_budget(rig: Rig) -> None:
    """The step that the old version did counts; those that it only recorded do not."""
    budget = CANCEL.replace("[[do]]", "[budget]\nrule_per_day = 1\n[[do]]")
    write(rig, budget.replace('"act"', '"observe"'))
    passed(rig)
    write(rig, budget)
    passed(rig)
    assert [done for *_, done in firings(rig)] == [False, True]
    write(rig, "expires = 2099-01-01\n" + budget)
    later(rig, 60)
    passed(rig)
    assert [done for *_, done in firings(rig)] == [False, True]
    assert rig.hub.get(RuleService).figures.left["idle"] == {"budget of the rule": 1}

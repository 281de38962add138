"""A campaign holds a policy back: nothing of it reaches the user, and everything is recorded."""

from dataclasses import replace

import pytest
from tests.unit.advice.policy.builders import BAD, REJECTING, REQUEST, WASTES, Day, decide, policies

from gpuwaste.advice.adviser import AdviceRequest, Adviser, Outlook
from gpuwaste.advice.hold_out import HoldOut
from gpuwaste.advice.policy.policy_case import Expectation, SubmissionFacts, policy_preview
from gpuwaste.core.scope import Scope

ALICE = Scope(user="alice")
OPER = Scope(user="oper", everything=True)


class HoldsBack(HoldOut):
    """Holds the policy `strict` back from alice, and notes who was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, str, int]] = []

    def holding_back(self, sort: str, name: str, user: str, account: str, at: int) -> str:
        self.asked.append((sort, name, user, account, at))
        return "trial" if (name, user) == ("strict", "alice") else ""


@pytest.mark.parametrize("facts", [BAD, WASTES])
def test_nothing_is_printed_and_everything_is_recorded(facts: SubmissionFacts) -> None:
    """The action is pass, `would_be` is that of the others, and the user's terminal shows nothing."""
    notified, back = (decide(facts, REJECTING, campaign=name) for name in ("", "trial"))
    assert notified.action in {"warn", "reject"}
    assert (back.action, back.would_be, back.held) == ("pass", notified.would_be, "campaign")
    assert back.campaign == "trial"
    assert (back.reply_action, back.printed) == ("pass", ())
    assert back.lines == notified.lines
    assert back.triggers == notified.triggers


def test_notes_and_time_limits_are_held_back_too() -> None:
    """A policy that only prints a note, or sets TimeMin, has no effect either."""
    back = decide(BAD, REJECTING, campaign="trial", expected=())
    noted = replace(back, notes=("use one GPU",))
    assert (noted.reply_action, noted.printed) == ("pass", ())
    assert replace(noted, campaign="").printed == ("use one GPU",)
    text = REJECTING + "[time_min]\nratio = 0.5\n"
    short = Expectation("walltime", "history", 20, quantiles={"0.9": 600.0})
    assert decide(BAD, text, expected=(short,)).time_min_s
    assert decide(BAD, text, expected=(short,), campaign="trial").time_min_s is None


def test_a_user_who_is_held_back_spends_no_budget() -> None:
    """A reject that nobody sees is not charged to the day's budget, nor drawn as a sample."""
    text = REJECTING.replace("pass_ratio = 0", "pass_ratio = 1")
    back = decide(BAD, text, day=Day({("reject", "alice"): 99}), chance=lambda: 0.0, campaign="trial")
    assert (back.action, back.held, back.sampled) == ("pass", "campaign", False)


def test_the_preview_of_a_user_is_that_of_a_site_without_the_policy() -> None:
    """`gpuwaste predict` names neither policy nor mode to who is held back; operators see it all."""
    back = decide(BAD, REJECTING, campaign="trial")
    shadow = decide(BAD, REJECTING.replace('"reject"', '"shadow"'))
    assert policy_preview(ALICE, back) == policy_preview(ALICE, shadow)
    assert policy_preview(OPER, back).would_be == "reject"
    assert policy_preview(OPER, back).held == "campaign"


def test_the_adviser_asks_for_the_policy_that_decides() -> None:
    """Sbatch, predict and plan ask the same campaigns, with the user, the account and the time of the submission."""
    hold_out = HoldsBack()
    adviser = Adviser(policies(REJECTING), hold_out=hold_out)
    outlook = Outlook()
    assert adviser.decide(AdviceRequest(REQUEST), outlook).decision.campaign == "trial"
    assert adviser.decide(AdviceRequest(replace(REQUEST, user="bob")), outlook).decision.campaign == ""
    assert hold_out.asked[0] == ("policy", "strict", "alice", "physics", REQUEST.submit)

"""Whom a digest reaches: real waste of one's own that is known for sure, and nobody else."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.ledger.builders import GIB, LATER, T0, job, judged_run, untouched, use

from gpuwaste.act.notify.notice_decisions import NoticeDecision, NoticeRules, UserState, addressed, staff_list
from gpuwaste.act.notify.notice_decisions import decide as decisions
from gpuwaste.ledger.judged_run import JudgedRun

WEEK = 7 * 86400
PERIOD = (T0 - WEEK // 2, T0 + WEEK // 2)
RULES = NoticeRules()
TEN_H = 36_000


def wasted(user: str = "alice", job_id: int = 7, seconds: int = TEN_H, **more: Any) -> JudgedRun:
    """Return a run whose one GPU was never touched."""
    return judged_run(job(job_id, seconds, user=user, **more), untouched(0, seconds))


def busy(user: str = "bob", job_id: int = 8, seconds: int = TEN_H) -> JudgedRun:
    """Return a run at 90 %."""
    return judged_run(job(job_id, seconds, user=user), use(0, seconds))


def decide(
    *jobs: JudgedRun,
    rules: NoticeRules = RULES,
    standing: UserState | None = None,
    period: tuple[int, int] = PERIOD,
    nobody: Sequence[str] = (),
) -> dict[str, NoticeDecision]:
    """Return the decisions by user, in the order of the plan."""
    found = addressed(
        decisions(jobs, period, rules, standing or UserState()),
        rules,
        lambda user: "" if user in nobody else f"{user}@example.org",
    )
    return {decision.user: decision for decision in found}


def test_waste_is_told_and_work_is_not() -> None:
    """Ten GPU-hours untouched are told with the job and the line to use; ten busy hours are not."""
    found = decide(wasted(), busy())
    assert (found["alice"].told, found["alice"].wasted_s, found["alice"].address) == (True, TEN_H, "alice@example.org")
    digest = found["alice"].digest
    assert digest is not None
    assert [row.printed_id for row in digest.jobs] == ["7"]
    assert [fix.lines for fix in digest.findings[0].fixes] == [["#SBATCH --gres=none"], []]
    assert digest.findings[0].runs[0].printed_id == "7"
    assert found["bob"].why == "little_waste"


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (NoticeRules(min_wasted_s=TEN_H + 1), "little_waste"),
        (NoticeRules(min_wasted_share=0.6), "small_share"),
        (NoticeRules(min_wasted_s=TEN_H, min_wasted_share=0.5), ""),
        (NoticeRules(max_mails=0), "mail_cap"),
    ],
)
def test_thresholds(rules: NoticeRules, why: str) -> None:
    """A user is told from the GPU-hours and from the share on, of all his judged GPU-time."""
    assert decide(wasted(), busy("alice"), rules=rules)["alice"].why == why


def half_known(seconds: int = TEN_H) -> JudgedRun:
    """Return a run of which the nodes reported only the first half, all of it idle."""
    return judged_run(job(9, seconds), untouched(0, seconds // 2))


def test_what_is_not_known_is_never_told() -> None:
    """Half a job's time unknown, no agent at all, or rows still on their way: nobody is told, whatever was idle."""
    assert decide(half_known())["alice"].why == "little_known"
    assert decide(judged_run(job(9, TEN_H)))["alice"].why == "little_known"
    late = judged_run(job(9, TEN_H), untouched(0, TEN_H - 600, final=False), now=T0 + TEN_H + 60)
    assert late.own.pending_ms > 0
    assert decide(late)["alice"].why == "little_known"
    assert decide(judged_run(job(9, None), untouched(0, TEN_H), now=T0 + TEN_H)) == {}


def test_much_unknown_keeps_the_known_waste_silent() -> None:
    """One clear wasted job beside two unknown ones is not enough to write about; beside one small one it is."""
    unknown = [judged_run(job(20 + i, TEN_H)) for i in range(2)]
    assert decide(wasted(), *unknown)["alice"].why == "little_known"
    found = decide(wasted(), judged_run(job(20, 600)))["alice"]
    assert (found.told, found.jobs, found.digest and found.digest.unclear_jobs) == (True, 1, 1)


def test_exempt_waste_is_not_counted() -> None:
    """A model that fills the GPU's memory, and the grace of an interactive job, are no ground for mail."""
    held = untouched(0, TEN_H, proc_seen=True, mem_max_b=30 * GIB)
    found = decide(judged_run(job(7, TEN_H), held))["alice"]
    assert (found.why, found.wasted_s, found.exempt_s) == ("little_waste", 0, TEN_H)
    short = judged_run(job(7, 1800, interactive=True), untouched(0, 1800))
    assert decide(short, rules=NoticeRules(min_wasted_s=1))["alice"].why == "little_waste"


def test_whole_nodes_get_no_advice() -> None:
    """A run that was given whole nodes counts neither as waste nor as work."""
    whole = judged_run(job(7, TEN_H), untouched(0, TEN_H), whole_node=True)
    assert decide(whole)["alice"].why == "whole_node"
    assert decide(whole, wasted("alice", 8, 20_000))["alice"].gpu_s == 20_000


def test_shared_gpus_are_never_waste() -> None:
    """A run that held only a share of a GPU gives no decision at all."""
    shared = judged_run(job(7, TEN_H, gpus=0), untouched(0, TEN_H, share=0.5))
    assert decide(shared) == {}


def test_who_said_no_and_who_was_just_told() -> None:
    """An opt-out and a digest within the cooldown keep a user from being told; an older digest does not."""
    assert decide(wasted(), standing=UserState({"alice"}))["alice"].why == "opted_out"
    days = 86400
    told = UserState((), {"alice": PERIOD[1] - 5 * days})
    assert decide(wasted(seconds=6 * 3600, start=T0 + 86400, end=T0 + 86400 + 21600), standing=told)["alice"].why in {
        "cooldown",
        "little_known",
    }
    old = UserState((), {"alice": PERIOD[0]})
    assert decide(wasted(), standing=old)["alice"].told


def test_a_digest_reaches_back_to_the_last_one() -> None:
    """With daily periods and a week's cooldown a digest covers the days since, not the last day alone."""
    day = (T0 + 2 * 86400, T0 + 3 * 86400)
    rules = NoticeRules(cooldown_s=5 * 86400)
    assert decide(wasted(), rules=rules, period=day)["alice"].start == day[1] - 5 * 86400
    since = UserState((), {"alice": T0 + TEN_H + 1})
    assert decide(wasted(), rules=rules, period=(day[0] + WEEK, day[1] + WEEK), standing=since) == {}


def test_nobody_without_an_address_and_no_more_than_the_cap() -> None:
    """The largest waste comes first; who has no address takes no place of others."""
    jobs = [wasted(f"u{i}", 10 + i, TEN_H + i) for i in range(4)]
    found = decide(*jobs, rules=NoticeRules(max_mails=2), nobody=["u3"])
    assert {user: d.why for user, d in found.items()} == {"u3": "no_address", "u2": "", "u1": "", "u0": "mail_cap"}
    assert found["u0"].digest is None


@pytest.mark.long
def test_a_digest_names_few_jobs() -> None:
    """Ten wasted jobs and an array make a digest of three lines, the largest first, and a count of the rest."""
    runs = [wasted(job_id=10 + i, seconds=TEN_H + 60 * i) for i in range(10)]
    array = [_task(i) for i in range(5)]
    digest = decide(*runs, *array, rules=NoticeRules(jobs=3))["alice"].digest
    assert digest is not None
    assert [row.printed_id for row in digest.jobs] == ["30_[0-4]", "19", "18"]
    assert (digest.jobs_left_out, len(digest.findings)) == (8, 3)


def _task(index: int) -> JudgedRun:
    record = job(30 + index, TEN_H, array_job_id=30, array_task_id=index, printed_id=f"30_{index}")
    return judged_run(record, untouched(0, TEN_H))


def test_the_staff_s_list() -> None:
    """Staff reads who wasted most, also who opted out, without what is exempt or unknown."""
    found = staff_list([[wasted(), busy()], [wasted("carol", 11, 2 * TEN_H), half_known()]], PERIOD, 0.8, 1)
    assert [row.user for row in found.users] == ["carol"]
    assert (found.users_left_out, found.unclear_jobs, found.waste.jobs) == (1, 1, 3)
    assert staff_list([[wasted()]], (LATER, LATER + 1), 0.8, 5).users == []

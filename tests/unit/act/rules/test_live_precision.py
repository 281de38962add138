"""Live precision: which steps were right by how the runs went on, and what a rule below its floor does."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.act.rules.test_replay import END, ended, row

from gpuwaste.act.keeps.keep_store import KeepStore
from gpuwaste.act.keeps.keep_types import KeepRow
from gpuwaste.act.rules.live_precision import APPEAL_S, LivePrecision, live_precisions
from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.act.rules.rule_demotions import RuleDemotions
from gpuwaste.act.rules.rule_file import rule_from_toml
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json
from gpuwaste.testing.hub_rows import HOUR, record

TEXT = """mode = "act"
where = "ledger.idle_s >= 1800.0"
approve = "none"
notify = "none"
after = "30m"
precision_floor = 0.9
precision_steps = 2
[[do]]
action = "cancel"
"""
RULE = rule_from_toml(TEXT.encode(), "r.toml", "r")
NOW = END + 3600


@pytest.fixture
def store() -> Iterator[HubStore]:
    """Open a store in memory."""
    found = HubStore.open(":memory:", SystemClock())
    yield found
    found.close()


def fired(store: HubStore, job: int, at: int = 3600, *, rule: Rule = RULE, name: str = "") -> str:
    """Store a step, by seconds after the run's start; return its id."""
    known = {"id": name or f"f{job}-{at}", "rule": rule.name, "hash": rule.hash, "mode": "act", "action": "cancel"}
    fire = {
        **known, "at_utc": HOUR + at, "step": 1, "done": True, "cluster": "gw", "subject": f"gw/{job}@{HOUR}",
        "job_id": job, "run_start": HOUR, "user": "u", "account": "a", "facts": "{}", "campaign": "",
    }  # fmt: skip
    with store.writing() as db:
        db.run("rule_firings_add", {"rows": to_json([fire])}).fetchall()
    return str(fire["id"])


def hours(store: HubStore, job: int, *busy: tuple[int, int] | None, unknown: int = 0) -> None:
    """Store an ended run by its hours."""
    upsert_jobs(store, [ended(job, "u")])
    upsert_hours(store, [row(job, n, one, unknown=unknown if n == 3 else 0) for n, one in enumerate(busy)])


def live(store: HubStore, now: int = NOW, restored: int = 0) -> LivePrecision:
    """Return the precision."""
    return live_precisions(store, [RULE], {("r", RULE.hash): restored}, now).get("r", LivePrecision())


def counts(found: LivePrecision) -> tuple[int, int, int]:
    """Return judged, wrong, unknown."""
    return found.judged, found.wrong, found.unknown


def test_right_wrong_and_unknown(store: HubStore) -> None:
    """Idle to the end is right, work after the step wrong; what runs, or is measured in part, is unknown."""
    for job in (1, 2, 3, 4, 5):
        fired(store, job)
    hours(store, 1, (0, 600), None, None, None)
    hours(store, 2, (0, 600), None, None, (0, 60))
    hours(store, 3, (0, 600), None, None, None, unknown=30)
    hours(store, 4, (0, 600), None)  # nothing is known of its last two hours
    upsert_jobs(store, [record(5, "u", end=None, state="RUNNING")])
    upsert_hours(store, [row(5, 1, None)])
    assert counts(live(store)) == (2, 1, 3)
    assert live(store).precision == 0.5
    upsert_hours(store, [row(5, 2, (0, 60))])
    assert counts(live(store)) == (3, 2, 2), "it woke up: that is known before its end"


def test_a_run_counts_once_by_its_last_step_unless_it_was_kept(store: HubStore) -> None:
    """A mail after which it worked, and later a step after which it did not: right; wrong where its owner had asked."""
    for job in (1, 2):
        fired(store, job, 1800)
        fired(store, job, 9000)
        hours(store, job, (0, 600), (0, 600), None, None)
    assert counts(live(store)) == (2, 0, 0)
    keep(store, 2, 1900)
    assert counts(live(store)) == (2, 1, 0)
    assert live(store).wrong_kept == 1
    keep(store, 1, 1000)
    assert live(store).wrong_kept == 1, "a keep from before the first step answers none"


def keep(store: HubStore, job: int, at: int) -> None:
    """Store a keep, by seconds after the run's start."""
    values: dict[str, Any] = {"cluster": "gw", "start": HOUR, "printed_id": "1", "user": "u", "account": "a"}
    values |= {"asked_by": "u", "reason": "x", "at": HOUR + at, "since": HOUR + at, "until": HOUR + at + 600}
    KeepStore(store, SystemClock()).add([KeepRow(id=f"k{job}{at}", job_id=job, **values)])


@pytest.mark.parametrize(
    ("later_s", "appeal", "expected"),
    [
        (APPEAL_S - 1, None, (0, 0, 1)),
        (APPEAL_S + 1, None, (1, 0, 0)),
        (APPEAL_S + 1, ("open", ""), (0, 0, 1)),
        (60, ("closed", "upheld"), (1, 1, 0)),
        (APPEAL_S + 1, ("closed", "dismissed"), (1, 0, 0)),
    ],
)
def test_a_run_that_the_rule_ended(
    store: HubStore, later_s: int, appeal: tuple[str, str] | None, expected: tuple[int, int, int]
) -> None:
    """It cannot show whether it would have worked: right once its owner had a week to appeal; upheld is wrong."""
    action = fired(store, 1, END - HOUR - 10)
    hours(store, 1, (0, 600), None, None, None)
    with store.writing() as db:
        db.execute(
            "INSERT INTO actions SELECT $id, 'r', 'h', 'cancel', 's', 'gw', 1, $start, 'u', 'a', '{}', '{}', 'none', 0,"
            " 0, 'confirmed', 0, '', 0, '{}', 1, $at, '', ''",
            {"id": action, "start": HOUR, "at": END},
        )
        if appeal:
            db.execute(
                "INSERT INTO appeals SELECT 'a', 'gw', 1, $start, '1', 'action', $id, 'u', 0, 'x', '{}', $status,"
                " $outcome, '', '', 0",
                {"id": action, "start": HOUR, "status": appeal[0], "outcome": appeal[1]},
            )
    assert counts(live(store, END + later_s)) == expected
    assert live(store, END + later_s).unappealed == int(expected == (1, 0, 0))


def test_another_file_of_the_rule_and_old_steps_do_not_count(store: HubStore) -> None:
    """The precision is that of the file in use, of 90 days, and after a restoration of later steps."""
    hours(store, 1, (0, 600), None, None, (0, 60))
    fired(store, 1, rule=rule_from_toml(("\n" + TEXT).encode(), "r.toml", "r"), name="other")
    assert counts(live(store)) == (0, 0, 0)
    fired(store, 1)
    assert counts(live(store)) == (1, 1, 0)
    assert counts(live(store, HOUR + 3600 + 90 * 86400)) == (0, 0, 0)
    assert counts(live(store, restored=HOUR + 3600)) == (0, 0, 0)


def test_a_rule_below_its_floor_goes_back_to_notify_and_stays_there(store: HubStore) -> None:
    """One judged run is too few; with the second it is demoted, over a restart, until it is restored or changed."""
    demotions = RuleDemotions(store)
    hours(store, 1, (0, 600), None, None, (0, 60))
    fired(store, 1)
    assert demotions.judge([RULE], NOW) == []
    assert demotions.in_force([RULE]) == [RULE]
    hours(store, 2, (0, 600), None, None, None)
    fired(store, 2)
    assert demotions.judge([RULE], NOW + 60) == [], "it is judged every quarter of an hour"
    (mail,) = demotions.judge([RULE], NOW + 900)
    assert (mail.options["to"], "1 of 2 judged runs" in mail.options["text"]) == ("staff", True)
    again = RuleDemotions(store)
    assert [rule.head.mode for rule in again.in_force([RULE])] == ["notify"]
    assert again.judge([RULE], NOW + 1800) == [], "once"
    changed = rule_from_toml(("\n" + TEXT).encode(), "r.toml", "r")
    assert again.in_force([changed]) == [changed]
    assert again.restore(RULE, "oper", NOW + 1800)
    assert not again.restore(RULE, "oper", NOW + 1800)
    assert again.in_force([RULE]) == [RULE]
    assert again.judge([RULE], NOW + 1860, at_once=True) == [], "earlier steps do not count any more"
    with store.reader() as db:
        assert db.execute("SELECT count(*) FROM told_events WHERE kind = 'rule.demoted'").fetchall() == [(1,)]


def test_a_rule_without_a_floor_or_above_it_is_left_alone(store: HubStore) -> None:
    """No floor is no demotion, however wrong the rule is; at the floor it stays."""
    assert not LivePrecision(judged=100, wrong=100).below(rule_from_toml(TEXT.replace("0.9", "0").encode(), "r", "r"))
    assert not LivePrecision(judged=100, wrong=10).below(RULE)
    assert LivePrecision(judged=100, wrong=11).below(RULE)
    assert not LivePrecision(judged=1, wrong=1).below(RULE)
    assert not LivePrecision().below(RULE)
    del store

"""Keeps in a replay: a kept run is not hit while it is kept, and the answer counts what that changed."""

from typing import Any

import pytest
from tests.unit.act.rules import test_replay
from tests.unit.act.rules.test_replay import END, IDLE, ended, row

from gpuwaste.act.keeps.keep_store import KeepStore
from gpuwaste.act.keeps.keep_types import KeepRow
from gpuwaste.act.rules.live_precision import LivePrecision
from gpuwaste.act.rules.rule_file import rule_from_toml
from gpuwaste.act.rules.rule_keeps import USUAL_ASKED, AskedShare, asked_share
from gpuwaste.act.rules.rule_replay import replayed
from gpuwaste.act.rules.rule_text import replay_text
from gpuwaste.act.rules.rule_types import ReplayDocument
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.show.layout import Look
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.hub_rows import HOUR

store = test_replay.store


def keep(store: HubStore, job: int, begin: int, until: int, *, start: int = HOUR) -> None:
    """Store a keep of a run, by seconds after its start."""
    values: dict[str, Any] = {
        "cluster": "gw",
        "start": start,
        "printed_id": str(job),
        "user": "u",
        "account": "a",
        "asked_by": "u",
    }
    at = HOUR + begin
    KeepStore(store, SystemClock()).add(
        [KeepRow(id=f"k{job}", job_id=job, at=at, since=at, until=HOUR + until, reason="x", **values)]
    )


def found(store: HubStore, rule: object = IDLE, asked: AskedShare | None = None) -> ReplayDocument:
    """Replay the four hours."""
    with store.reader() as db:
        return replayed(db, rule, "gw", HOUR - 60, END + 60, LedgerSettings(), asked)  # type: ignore[arg-type]


def fill(store: HubStore) -> None:
    """Store four jobs idle from minute 10 on: two to their end, two that work again in the fourth hour."""
    upsert_jobs(store, [ended(n, user) for n, user in enumerate(("alice", "bob", "carol", "dave"), 1)])
    rows = []
    for job in (1, 2, 3, 4):
        rows += [row(job, 0, (0, 600)), row(job, 1, None), row(job, 2, None)]
        rows.append(row(job, 3, None if job < 3 else (600, 3600)))
    upsert_hours(store, rows)


def test_a_kept_run_is_not_hit_and_what_that_changed_is_counted(store: HubStore) -> None:
    """The requeue after 2 h comes at minute 130: job 3's keep saves it, job 1's delays a right one, job 4's is over."""
    fill(store)
    before = {one.after_s: one for one in found(store).rows}
    assert (before[7200].jobs, before[7200].wrong, before[7200].precision) == (4, 2, 0.5)
    assert found(store).keeps == []
    keep(store, 3, 7000, 14000)
    keep(store, 1, 7000, 9000)
    keep(store, 4, 1000, 7000)
    keep(store, 2, 7000, 14000, start=HOUR - 60)  # another run of its id
    document = found(store)
    after = {one.after_s: one for one in document.rows}
    assert (after[7200].jobs, after[7200].wrong, after[7200].precision) == (3, 1, 2 / 3)
    kept = {one.after_s: one for one in document.keeps}[7200]
    assert (kept.hits, kept.avoided, kept.right, kept.wrong, kept.step) == (2, 1, 1, 1, "requeue")
    assert kept.spared_gpu_h == pytest.approx((14400 - 7800) / 3600)
    assert kept.not_freed_gpu_h == pytest.approx((600 + 9000 - 7800) / 3600), (
        "hit at the next instant that is looked at"
    )
    assert after[7200].freed_gpu_h == pytest.approx(before[7200].freed_gpu_h - kept.not_freed_gpu_h)
    assert after[7200].lost_gpu_h == pytest.approx(before[7200].lost_gpu_h - kept.spared_gpu_h)
    text = " ".join(replay_text(document, Look()).split())
    assert "requeue after 2 h: 2 runs were kept then, 1 of them never hit" in text
    assert "had 12 % of the owners of wrongly hit jobs requested a keep (assumed): 0.9 wrong" in text


def test_a_rule_that_does_not_wait_is_replayed_without_keeps(store: HubStore) -> None:
    """Keep = false: the hits are the same."""
    fill(store)
    keep(store, 3, 0, 14000)
    text = 'keep = false\nwhere = "ledger.idle_s >= 1800.0"\nsince = "ledger.idle_s"\n'
    rule = rule_from_toml((text + '[[do]]\nafter = "2h"\naction = "signal"\n').encode(), "r.toml", "r")
    document = found(store, rule)
    assert ({one.after_s: one for one in document.rows}[7200].jobs, document.keeps) == (4, [])


def test_had_a_share_of_the_owners_asked(store: HubStore) -> None:
    """Of two wrong hits and two right ones: nobody, half, all ask."""
    fill(store)
    rows = found(store, asked=AskedShare(0.5, 0.25, 1.0, 20)).asked
    assert [(one.share, one.wrong, one.measured) for one in rows] == [
        (0.0, 2.0, True), (0.25, 1.5, True), (0.5, 1.0, True), (1.0, 0.0, True),
    ]  # fmt: skip
    assert [one.precision for one in rows] == [0.5, 2 / 3.5, 2 / 3, 1.0]
    assert rows[3].lost_gpu_h == 0.0
    assert {one.freed_gpu_h for one in rows} == {rows[0].freed_gpu_h}


def test_the_share_who_asked_is_the_site_s_own_once_it_is_known() -> None:
    """Nineteen misjudged runs are too few; of twenty the share has its interval."""
    assert asked_share(None).share == asked_share(LivePrecision(judged=30, wrong=19, wrong_kept=9)).share == USUAL_ASKED
    own = asked_share(LivePrecision(judged=30, wrong=20, wrong_kept=5))
    assert own.low is not None
    assert own.high is not None
    assert (own.share, own.of, own.low < 0.25 < own.high) == (0.25, 20, True)

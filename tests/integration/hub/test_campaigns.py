"""Campaigns in a hub: who is held back sees nothing of it, and operators see what it has shown."""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Rig, running_hub
from tests.integration.hub.test_now import NOW, OPEN, used
from tests.integration.hub.test_rules import LADDER

from gpuwaste.act.campaigns.assignment import Assignment, CampaignsInUse
from gpuwaste.act.campaigns.campaign_file import campaign_from_toml
from gpuwaste.act.campaigns.campaign_keeper import CampaignKeeper
from gpuwaste.act.campaigns.effect_reads import EffectReads
from gpuwaste.act.events.event_service import EventService
from gpuwaste.act.notify.notice_text import staff_text
from gpuwaste.act.notify.notify_parts import NotifyParts
from gpuwaste.act.rules.rule_service import RuleService
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.jobs.verdict import Action, Verdict
from gpuwaste.show.layout import Look
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.campaign_weeks import fill_weeks
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import HOUR, batch, record
from gpuwaste.testing.mail_server import running_mail_server

ALICE, BOB, OPER = 1001, 1002, 1004
KEY = "0123456789abcdef0123456789abcdef"
DAY = 86400
MONDAY = int(datetime(2025, 6, 16).timestamp())  # noqa: DTZ001 weeks begin at the site's own midnight
FOUR_WEEKS = 'what = ["rule:idle", "digest", "policy:gpus"]\nstart = 2025-06-16\nend = 2025-07-13\nheld_back = 0.5\n'
NOW_WEEKS = 'what = ["rule:idle", "digest"]\nstart = 2023-11-13\nend = 2023-12-10\nheld_back = 0.5\nweeks_before = 2\n'


def keys(folder: Path, text: str) -> dict[str, str]:
    """Write a campaign with the site's key; return the keys of [common]."""
    (folder / "campaigns.d").mkdir(exist_ok=True)
    (folder / "campaigns.d" / "trial.toml").write_text(text)
    (folder / "key").write_text(KEY)
    (folder / "key").chmod(0o600)
    return {"campaigns_dir": str(folder / "campaigns.d"), "campaign_key_file": str(folder / "key")}


def key_that(text: str, back: str, notified: str) -> str:
    """Return a key that holds back one user and tells another."""
    campaign = campaign_from_toml(text.encode(), "trial.toml", "trial")
    for number in range(1000):
        found = Assignment(f"{KEY}{number}".encode())
        if found.notified_from(campaign, back) and not found.notified_from(campaign, notified):
            return f"{KEY}{number}"
    raise AssertionError("no key in a thousand")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub in the first week of a campaign: idle jobs of alice, who is held back, and of bob, who is notified."""
    nodes = [Node(f"gpu{n}", address=f"10.0.0.{n}") for n in (1, 2)]
    slurm = FakeSlurm(node_list=nodes, levels={"oper": "Operator"})
    (tmp_path / "rules.d").mkdir()
    (tmp_path / "rules.d" / "idle.toml").write_text(LADDER.replace("MODE", "act"))
    common = keys(tmp_path, NOW_WEEKS)
    (tmp_path / "key").write_text(key_that(NOW_WEEKS, "alice", "bob"))
    hub_keys = {"rules_dir": str(tmp_path / "rules.d")}
    with running_hub(tmp_path, slurm, clock=ShiftedClock(NOW), hub_keys=hub_keys, common_keys=common) as found:
        found.hub.get(ClusterFacts).refresh()
        upsert_jobs(found.store, [record(7, "alice", **OPEN), record(8, "bob", **OPEN)])
        assert found.post(batch(used(7, 0), used(8, 0))).status == 200
        yield found


def passes(rig: Rig, hours: int) -> None:
    """Let both jobs idle for some hours, with a pass of the rules every ten minutes."""
    assert isinstance(rig.clock, ShiftedClock)
    for _ in range(hours * 6):
        rig.clock.later_s += 600
        until, rows = NOW + rig.clock.later_s - 60, []
        for begin in range(HOUR, until, 3600):
            end = min(begin + 3600, until)
            span = (end - begin) * 1000
            times = {"hour_utc": begin, "t0_ms": begin * 1000, "t1_ms": end * 1000, "seq": 10 + rig.clock.later_s}
            rows += [used(one, 0, **times, util_ms={0: span}, idle_run_ms=span) for one in (7, 8)]
        assert rig.post(batch(*rows)).status == 200
        rig.hub.get(RuleService).step()


def test_a_rule_is_held_back_and_recorded(rig: Rig) -> None:
    """Bob's steps are done, alice's are only recorded with the campaign; nothing of hers reaches an actor or a mail."""
    passes(rig, 2)
    events = [event["data"] for event in rig.get(OPER, "/v1/events?kinds=rule.fired").json["events"]]
    by_user = {
        user: [(one["done"], one["campaign"]) for one in events if one["user"] == user] for user in ("alice", "bob")
    }
    assert by_user == {"alice": [(False, "trial")] * 2, "bob": [(True, "")] * 2}
    actions = rig.get(OPER, "/v1/actions?start=0").json["actions"]
    assert {one["user"] for one in actions} == {"bob"}


def test_who_is_held_back_sees_what_others_see_without_the_rule(rig: Rig) -> None:
    """Of all that alice can read nothing names the campaign, the rule, or that a step was held back."""
    passes(rig, 2)
    rig.hub.get(CampaignKeeper).step()
    for target in ("/v1/jobs/7", "/v1/events", "/v1/notices", "/v1/verdicts", "/v1/actions?start=0", "/v1/effects"):
        answer = rig.get(ALICE, target)
        for word in (b"trial", b"held_back", b"campaign", b"idle.toml"):
            assert word not in answer.body.replace(b"only operators may see campaigns", b""), target
    for target in ("/me", "/jobs/7", "/verdicts", "/effects", "/effects.json"):
        body = rig.page(ALICE, target).body
        assert b"trial" not in body
        assert b"held back" not in body
    assert rig.get(ALICE, "/v1/effects").status == 403
    assert rig.get(ALICE, "/v1/effects/split?at=1").status == 403


def test_a_rule_that_protects_jobs_is_for_everybody(rig: Rig) -> None:
    """A rule that sends a signal or extends a limit is not held back, whatever the campaign's file says."""
    text = LADDER.replace("MODE", "act").replace('action = "cancel"', 'action = "signal"')
    (rig.directory / "rules.d" / "idle.toml").write_text(text)
    passes(rig, 2)
    events = [event["data"] for event in rig.get(OPER, "/v1/events?kinds=rule.fired").json["events"]]
    assert {(one["user"], one["done"]) for one in events} == {("alice", True), ("bob", True)}


def test_a_digest_is_held_back(tmp_path: Path) -> None:
    """Who is notified gets the mail; who is held back gets none, and reads nothing of it."""
    with running_mail_server() as mail:
        site = NotifyConfig(
            address="{user}@example.org", min_wasted_gpu_h=0.1, smtp_host="127.0.0.1", smtp_port=mail.port,
            sender="hpc@example.org", dry_run=False, settle_s=0.0,
        )  # fmt: skip
        common = keys(tmp_path, NOW_WEEKS)
        (tmp_path / "key").write_text(key_that(NOW_WEEKS, "alice", "bob"))
        clock = ShiftedClock(NOW + 8 * DAY)
        with running_hub(tmp_path, clock=clock, notify=site, common_keys=common) as rig:
            for number, user in ((7, "alice"), (8, "bob")):
                upsert_jobs(rig.store, [record(number, user)])
                row = used(
                    number, 0, final=True, t1_ms=HOUR * 1000 + 1_800_000, util_ms={0: 1_800_000}, idle_run_ms=1_800_000
                )
                assert rig.post(batch(row)).status == 200
            rig.hub.get(Importer).step()
            run = rig.post(b'{"dry_run": false}', OPER, target="/v1/notices/run")
            assert run.json["not_told"] == {"held_back": 1}, run.body
            assert [one["user"] for one in run.json["told"]] == ["bob"]
            assert rig.get(ALICE, "/v1/notices").json["notices"] == []
            assert len(rig.get(BOB, "/v1/notices").json["notices"]) == 1
            rows = rig.get(OPER, "/v1/notices").json["notices"]
            assert {row["user"]: row["why"] for row in rows} == {"alice": "held_back", "bob": ""}
            assert b"held_back" not in rig.get(ALICE, "/v1/notices/preview").body


def filled(rig: Rig, share: float) -> float:
    """Give 40 users two weeks before and four in the campaign; return the GPU-hours that those notified save."""
    text = (rig.directory / "campaigns.d" / "trial.toml").read_text()
    campaign = campaign_from_toml(text.encode(), "trial.toml", "trial")
    users = [f"user{number}" for number in range(40)]
    return fill_weeks(rig.store, campaign, Assignment(KEY.encode()), users, share).saved_h


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub a day after a campaign of four weeks ended."""
    slurm = FakeSlurm(node_list=[Node("gpu1", address="10.0.0.1")], levels={"oper": "Operator"})
    energy = EnergyConfig(price_per_gpu_hour=2.0)
    common = keys(tmp_path, FOUR_WEEKS.replace("held_back = 0.5", "held_back = 0.5\nweeks_before = 2"))
    clock = ShiftedClock(MONDAY + 29 * DAY)
    with running_hub(tmp_path, slurm, clock=clock, common_keys=common, energy=energy) as rig:
        rig.hub.get(ClusterFacts).cluster()
        yield rig


def effect_of(rig: Rig) -> dict[str, Any]:
    """Return the one campaign as an operator reads it."""
    rig.hub.get(CampaignKeeper).step()
    answer = rig.get(OPER, "/v1/effects")
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json["campaigns"][0]
    return found


def test_an_injected_effect_is_found(measured: Rig) -> None:
    """What those notified saved is within the interval, in GPU-hours and money; the sentence, page and CSV say it."""
    saved = filled(measured, 0.5)
    found = effect_of(measured)
    figure = found["saved_gpu_h"]
    assert figure["low"] > 0, found["sentence"]
    assert figure["low"] <= saved <= figure["high"]
    assert found["worth"]["value"] == pytest.approx(2 * figure["value"])
    assert found["complete"] == 4
    assert found["notified"] + found["held_back"] == 40
    assert found["failed_more"]["low"] <= 0 <= found["failed_more"]["high"]
    assert "GPU-hours saved (95 %" in found["sentence"]
    page = measured.page(OPER, "/effects")
    assert page.status == 200
    assert b"GPU-hours saved" in page.body.replace(b'<span class="nowrap">', b"").replace(b"</span>", b"")
    assert measured.page(OPER, "/effects.csv").body.startswith(b"name,")


def test_without_numpy_the_answer_says_what_to_install(measured: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub without the extra has the campaign without figures, and names the package; nothing else is affected."""
    filled(measured, 0.5)
    monkeypatch.delitem(sys.modules, "gpuwaste.act.campaigns.campaign_figures", raising=False)
    for name in [name for name in sys.modules if name.startswith("gpuwaste.act.campaigns.campaign_panel")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    found = effect_of(measured)
    assert any("no module numpy" in problem and "[predict]" in problem for problem in found["problems"]), found
    assert found["saved_gpu_h"]["value"] is None


def test_the_mail_to_staff_has_the_answer(measured: Rig) -> None:
    """The weekly list to staff ends with the sentence of each campaign that runs or has just ended."""
    filled(measured, 0.5)
    sentence = effect_of(measured)["sentence"]
    planner = measured.hub.get(NotifyParts).service._planner
    document = planner.staff((MONDAY, MONDAY + 7 * DAY), measured.clock.utc_s())
    assert document.campaigns == [f"trial: {sentence}"]
    assert "trial: Since 16 June 2025" in " ".join(staff_text(document, Look(), "").split())


def test_without_an_effect_none_is_found(measured: Rig) -> None:
    """A campaign whose notices change nothing (A/A) has an interval around 0 and claims nothing."""
    filled(measured, 0.0)
    found = effect_of(measured)
    assert found["saved_gpu_h"]["low"] <= 0 <= found["saved_gpu_h"]["high"]
    assert "no saving shown" in found["sentence"]


def test_each_week_is_told_once(measured: Rig) -> None:
    """After a week is complete there is one event and one line of the record, also after a restart of the part."""
    filled(measured, 0.3)
    measured.hub.get(CampaignKeeper).step()
    for _ in range(3):
        measured.hub.get(EffectReads).step()
    notified = measured.hub.get(EventService).store.told_since(("campaign.measured",), 0, 10)
    assert [json.loads(one["data"])["week"] for one in notified] == [4]
    assert sum(line["what"] == "measured" for line in effect_of(measured)["record"]) == 1


def test_a_changed_file_is_in_the_record_and_ends_the_figures(measured: Rig, tmp_path: Path) -> None:
    """Who changes what is assigned is named with the file's owner and reason; weeks after it do not count."""
    filled(measured, 0.5)
    assert isinstance(measured.clock, ShiftedClock)
    measured.clock.later_s -= 14 * DAY
    effect_of(measured)
    file = tmp_path / "campaigns.d" / "trial.toml"
    file.write_text(file.read_text().replace("0.5", "0.3") + 'reason = "ops: too many"\n')
    measured.clock.later_s += 60
    effect_of(measured)
    measured.clock.later_s += 15 * DAY
    found = effect_of(measured)
    assert found["complete"] == 2, found["record"]
    assert any("ops: too many" in problem for problem in found["problems"])
    changed = next(line for line in found["record"] if line["what"].startswith("changed"))
    assert "held_back" in changed["words"]
    assert "file of root" in changed["words"]


def test_a_removed_file_stops_the_campaign_and_keeps_its_figures(measured: Rig, tmp_path: Path) -> None:
    """Who removes the file early stops the campaign: its complete weeks are still shown, and the record says when."""
    filled(measured, 0.5)
    assert isinstance(measured.clock, ShiftedClock)
    measured.clock.later_s -= 14 * DAY
    effect_of(measured)
    (tmp_path / "campaigns.d" / "trial.toml").unlink()
    found = effect_of(measured)
    assert found["state"] == "stopped"
    assert found["complete"] == 2
    assert found["record"][-1]["what"] == "removed"
    start = MONDAY + 20 * DAY
    assert not any(
        measured.hub.get(CampaignsInUse).holding_back("digest", "", f"user{n}", "", start) for n in range(40)
    )


def test_another_key_is_in_the_record(measured: Rig, tmp_path: Path) -> None:
    """A new key assigns anew: the figures end there, and the record says so."""
    filled(measured, 0.5)
    assert isinstance(measured.clock, ShiftedClock)
    measured.clock.later_s -= 14 * DAY
    effect_of(measured)
    (tmp_path / "key").write_text(KEY[::-1])
    measured.clock.later_s += 14 * DAY
    found = effect_of(measured)
    assert "key changed" in [line["what"] for line in found["record"]]
    assert found["problems"]


def test_a_notice_that_reached_who_is_held_back_is_counted(measured: Rig) -> None:
    """A verdict that warned somebody who is held back shows that an advisor has another key: the answer says so."""
    filled(measured, 0.0)
    campaign = campaign_from_toml(FOUR_WEEKS.encode(), "trial.toml", "trial")
    assignment = Assignment(KEY.encode())
    back = next(f"user{n}" for n in range(40) if assignment.notified_from(campaign, f"user{n}"))
    notified = next(f"user{n}" for n in range(40) if not assignment.notified_from(campaign, f"user{n}"))
    at_us = (MONDAY + 3 * DAY) * 1_000_000
    verdicts: tuple[tuple[str, Action, str], ...] = (
        (notified, "warn", ""),
        (back, "pass", "trial"),
        (back, "warn", ""),
        (notified, "pass", ""),
    )
    rows = [
        Verdict(f"{n:016d}", "gw", at_us + n, "submit", "gpus", "warn", action, "warn", user=user, campaign=name)
        for n, (user, action, name) in enumerate(verdicts)
    ]
    before = effect_of(measured)
    measured.hub.get(VerdictStore).add(rows, "ctl")
    assert isinstance(measured.clock, ShiftedClock)
    measured.clock.later_s += 3600
    found = effect_of(measured)
    counts = ("notices", "withheld", "leaked")
    assert [found[name] - before[name] for name in counts] == [1, 1, 1]
    assert any("reached users that are held back" in problem for problem in found["problems"])


def test_before_and_after_is_no_effect(measured: Rig) -> None:
    """The difference around an instant has its warning first, and the same sums as the weeks."""
    filled(measured, 0.5)
    answer = measured.get(OPER, f"/v1/effects/split?at={MONDAY}&weeks=2")
    assert answer.status == 200
    assert "not an effect" in answer.json["warning"]
    assert 200 < answer.json["before"]["jobs"] < 280
    assert answer.json["after"]["idle_gpu_h"] < answer.json["before"]["idle_gpu_h"]
    for bad in ("at=0", "at=99999999999", f"at={MONDAY}&weeks=0", f"at={MONDAY}&weeks=53", "at=x", ""):
        assert measured.get(OPER, f"/v1/effects/split?{bad}").status in {400, 422}, bad


def test_a_campaign_that_does_not_exist_is_not_found(measured: Rig) -> None:
    """The error names what exists; odd names are no fault of the hub."""
    assert measured.get(OPER, "/v1/effects?campaign=nothing").status == 404
    assert measured.get(OPER, "/v1/effects?campaign=" + "x" * 300).status in {400, 422}
    assert json.loads(measured.get(OPER, "/v1/effects").body)["campaigns"] == []

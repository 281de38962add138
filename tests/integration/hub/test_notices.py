"""The notice routes over real HTTP: own rows, own wish, own preview; everything else is an operator's."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Answer, Rig, running_hub

from gpuwaste.act.notify.notice_store import NoticeStore
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.testing.hub_rows import batch, hour, record

ALICE, BOB, OPER = 1001, 1002, 1004
SITE = NotifyConfig(address="{user}@example.org", min_wasted_gpu_h=0.1, smtp_host="127.0.0.1", sender="hpc@example.org")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rig]:
    """Alice's job of this hour was idle, bob's was busy; each was told once."""
    with running_hub(tmp_path, notify=SITE) as rig:
        start = int(time.time()) // 3600 * 3600 - 3600
        for job, user, util in ((7, "alice", 0), (8, "bob", 90)):
            run = record(job, user, start=start, end=start + 1800, submit=start - 60)
            upsert_jobs(rig.store, [run])
            row = hour(
                job, final=True, run_key=run.run_key, gpu_uuid=f"GPU-{job}", hour_utc=start, t0_ms=start * 1000,
                t1_ms=start * 1000 + 1_800_000, util_ms={util: 1_800_000}, idle_run_ms=0 if util else 1_800_000,
            )  # fmt: skip
            assert rig.post(batch(row)).status == 200
        rows = [_row("alice", "sent"), _row("bob", "not", why="little_waste")]
        NoticeStore(rig.store, rig.clock).add_period("digest", start, rows, dry=False)
        yield rig


def _row(user: str, status: str, why: str = "") -> dict[str, Any]:
    return {
        "user": user, "period_start": 1, "status": status, "why": why, "address": f"{user}@example.org", "jobs": 1,
        "gpu_s": 1800.0, "wasted_s": 1800.0, "exempt_s": 0.0, "coverage": 1.0, "document": "",
    }  # fmt: skip


def post(rig: Rig, uid: int, target: str, **body: Any) -> Answer:
    """Send an order."""
    data = json.dumps(body).encode()
    return rig.post(data, uid, target=target)


def test_a_user_reads_his_own_rows(hub: Rig) -> None:
    """Alice sees that she was told, bob that he was not; of each other they see what is not there."""
    assert [row["user"] for row in hub.get(ALICE, "/v1/notices").json["notices"]] == ["alice"]
    assert [row["why"] for row in hub.get(BOB, "/v1/notices").json["notices"]] == ["little_waste"]
    nothing = hub.get(BOB, "/v1/notices?user=nobody")
    foreign = hub.get(BOB, "/v1/notices?user=alice")
    assert (foreign.status, foreign.body) == (nothing.status, nothing.body) == (404, nothing.body)
    assert len(hub.get(OPER, "/v1/notices").json["notices"]) == 2
    assert hub.send("GET", "/v1/notices").status == 401


def test_a_user_reads_what_he_would_be_told(hub: Rig) -> None:
    """Alice's preview is the mail with her job; bob's says why there is none; an operator may see both."""
    mine = hub.get(ALICE, "/v1/notices/preview").json
    assert (mine["user"], mine["why"], mine["to"]) == ("alice", "", "alice@example.org")
    assert "Dear alice," in mine["text"]
    assert hub.get(BOB, "/v1/notices/preview").json["why"] == "little_waste"
    assert hub.get(BOB, "/v1/notices/preview?user=alice").status == 404
    assert hub.get(OPER, "/v1/notices/preview?user=alice").json["text"] == mine["text"]
    assert hub.get(OPER, "/v1/notices/preview?user=nobody").json["why"] == "no_jobs"


def test_a_wish_is_the_caller_s_own(hub: Rig) -> None:
    """Off and on count for who says so; the body has no place for another's name."""
    assert post(hub, ALICE, "/v1/notices/wish", mail=False).json["mail"] is False
    assert hub.get(ALICE, "/v1/notices/preview").json["why"] == "opted_out"
    assert post(hub, ALICE, "/v1/notices/wish", mail=True).status == 200
    assert hub.get(ALICE, "/v1/notices/preview").json["why"] == ""
    assert post(hub, BOB, "/v1/notices/wish", mail=False, user="alice").status == 400
    assert post(hub, BOB, "/v1/notices/wish", mail="no").status == 400
    assert hub.post(b"\xff{", ALICE, target="/v1/notices/wish").status == 400
    assert hub.send("POST", "/v1/notices/wish", b'{"mail": false}').status == 401
    assert hub.get(ALICE, "/v1/notices/preview").json["why"] == ""


def test_replay_and_run_are_for_operators(hub: Rig) -> None:
    """Users are refused; an operator's replay names alice once and says why bob was not told."""
    now = int(time.time())
    for uid in (ALICE, BOB):
        assert hub.get(uid, f"/v1/notices/replay?start={now - 86400}").status == 403
        assert post(hub, uid, "/v1/notices/run", dry_run=True).status == 403
    ahead = hub.get(OPER, f"/v1/notices/replay?start={now - 14 * 86400}").json
    assert ahead["document"] == "notice-replay"
    assert len(ahead["periods"]) == 2
    assert hub.get(OPER, f"/v1/notices/replay?start={now}&end={now - 1}").status == 400
    assert hub.get(OPER, "/v1/notices/replay?start=0").status == 400


def test_run_waits_for_accounting(hub: Rig) -> None:
    """A dry run shows what would be, and says what is missing; a real one is refused as long as that is so."""
    shown = post(hub, OPER, "/v1/notices/run", dry_run=True).json
    assert (shown["dry_run"], "accounting" in shown["missing"] or "come in" in shown["missing"]) == (True, True)
    refused = post(hub, OPER, "/v1/notices/run", dry_run=False)
    assert (refused.status, "cannot be processed yet" in refused.json["error"]) == (503, True)


def test_without_a_mail_server_nothing_runs(tmp_path: Path) -> None:
    """Where [notify] names no server, run is refused with that reason; preview and replay still answer."""
    with running_hub(tmp_path) as rig:
        assert "smtp_host is empty" in post(rig, OPER, "/v1/notices/run", dry_run=True).json["error"]
        assert rig.get(ALICE, "/v1/notices/preview").json["why"] == "no_jobs"

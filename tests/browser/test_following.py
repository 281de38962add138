"""Pages that refresh themselves, in a real browser: news comes without a reload, and what was typed stays."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Readers
from tests.browser.scene import ALICE, BOB, OPER
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.hub_rows import batch, hour, record

PATIENCE_MS = 90_000


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Run a hub with a running job 7 of alice, whose GPU does nothing."""
    with running_hub(tmp_path_factory.mktemp("live")) as rig:
        rig.hub.get(ClusterFacts).refresh()
        yield rig


@pytest.fixture
def start(live: Rig) -> int:
    """Let alice's job 7 run, whose node has not reported for an hour at least; return its start, UTC seconds."""
    begin = int(time.time()) // 3600 * 3600 - 7200
    upsert_jobs(live.store, [job(begin)])
    idle = hour(
        7, run_key=RunKey("gw", 7, begin), hour_utc=begin, t0_ms=begin * 1000, t1_ms=(begin + 3600) * 1000,
        util_ms={0: 3_600_000}, idle_run_ms=3_600_000,
    )  # fmt: skip
    assert live.post(batch(idle)).status == 200
    return begin


def job(begin: int, **ended: Any) -> JobRecord:
    values: dict[str, Any] = {
        "submit": begin - 60,
        "start": begin,
        "end": None,
        "state": "RUNNING",
        "elapsed_s": 3600,
        "gpus": 1,
    }
    return record(7, "alice", **{**values, "alloc_tres": "cpu=4,gres/gpu=1", **ended})


def marked(page: Page) -> None:
    """Leave a mark that a reload would take away."""
    page.evaluate("() => { window.sameDocument = true; }")


def is_same(page: Page) -> bool:
    return page.evaluate("() => window.sameDocument === true") is True


def test_a_job_s_page_shows_its_end_without_a_reload(live: Rig, start: int, reader: Readers) -> None:
    """State and sentence change; what is typed into the form and an open detail stay; then it follows no longer."""
    found = reader(ALICE, rig=live)
    page = found.page
    with page.expect_response("**/jobs/7/changes?after=*"):
        found.open("/jobs/7")
    expect(page.locator("main p").first).to_contain_text("RUNNING")
    page.get_by_text("Raw numbers").click()
    page.get_by_role("textbox", name="If the figures").fill("it was waiting for data")
    marked(page)
    upsert_jobs(live.store, [job(start, end=start + 3600, state="COMPLETED")])
    expect(page.locator("main p").first).to_contain_text("COMPLETED", timeout=PATIENCE_MS)
    assert is_same(page)
    assert page.locator("#words").input_value() == "it was waiting for data"
    assert page.locator("details[open] > summary").all_inner_texts() == ["Raw numbers of 1 GPU"]
    assert page.locator("main[data-follow]").count() == 0
    times = page.locator("main time").first
    assert times.inner_text()[:16] != (times.get_attribute("title") or "")[:16], "times are the reader's again"
    assert found.violations() == []


def test_an_operator_s_page_of_now_shows_a_job_that_starts(live: Rig, start: int, reader: Readers) -> None:
    """The hub's figures are taken anew; nothing is refused by the policy."""
    found = reader(OPER, rig=live)
    page = found.page
    with page.expect_response("**/now/changes?after=*"):
        found.open("/now")
    marked(page)
    expect(page.locator("h1")).to_contain_text("1 GPU is held by a job now")
    hold: dict[str, Any] = {"submit": start, "start": start + 60, "end": None, "state": "RUNNING"}
    upsert_jobs(live.store, [record(9, "bob", **hold, gpus=1, alloc_tres="cpu=4,gres/gpu=1")])
    expect(page.locator("h1")).to_contain_text("2 GPUs are held by jobs now", timeout=PATIENCE_MS)
    assert is_same(page)
    assert found.violations() == []


def test_a_reader_who_signs_out_elsewhere_is_shown_the_sign_in_page(live: Rig, start: int, reader: Readers) -> None:
    """The stream ends with the session, and the page does not stay there with old figures."""
    found = reader(ALICE, rig=live)
    page = found.page
    with page.expect_response("**/now/changes?after=*"):
        found.open("/now")
    other = page.context.new_page()
    other.goto(f"{found.origin}/me")
    other.get_by_role("button", name="Sign out").click()
    page.bring_to_front()
    expect(page.get_by_text("gpuwaste web", exact=False).first).to_be_visible(timeout=PATIENCE_MS)


def test_without_a_stream_and_without_scripts_the_page_is_whole(live: Rig, start: int, reader: Readers) -> None:
    """A hub that refuses the stream costs the page nothing."""
    found = reader(BOB, rig=live)
    found.page.route("**/now/changes?after=*", lambda route: route.fulfill(status=429))
    assert found.open("/now") == 200
    assert found.violations() == []
    plain = reader(BOB, rig=live, java_script_enabled=False)
    assert plain.open("/now") == 200
    assert plain.page.locator("h1").count() == 1

"""The pages of views: for operators, with each form at the same path, and links that stay true."""

import json
import time
from xml.etree import ElementTree as ET

import pytest
from tests.integration.hub.rig import Rig
from tests.integration.hub.test_pages import ALICE, OPER

from gpuwaste.core.typed import convert
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.show.view_document import ComparisonDocument
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record
from gpuwaste.views.view import all_views

VIEWS = tuple(all_views())
EDGES = f"start={HOUR - 86400}&end={HOUR + 86400}"
pytestmark = pytest.mark.sockets


@pytest.fixture(scope="module")
def filled(shared_hub: Rig) -> Rig:
    """Return the hub of the tests that change nothing in it."""
    return with_jobs(shared_hub)


def with_jobs(hub: Rig) -> Rig:
    """Give a hub two jobs of two users, one of whom has a hostile name for it."""
    upsert_jobs(hub.store, [record(7, "alice", gpus=1), record(8, "bob", "<b>proj</b>", name="</svg><script>")])
    assert hub.post(batch(hour(7))).status == 200
    return hub


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_is_a_page(filled: Rig, view: str) -> None:
    """An operator gets it with its query; its links lead to the same window as CSV, JSON and SVG."""
    answer = filled.page(OPER, f"/analytics/{view}?start=1000000000&end=2000000000")
    text = answer.body.decode()
    assert answer.status == 200, text
    assert "How this is computed" in text
    assert text.index("<h1>") < text.index('<form class="filters"'), "the answer is the first line"
    assert "<script>" not in text.replace("<script src=", "")
    assert f'href="/analytics/{view}?start=1000000000&amp;end=' in text
    found = json.loads(filled.page(OPER, f"/analytics/{view}.json?start=1000000000&end=2000000000").body)
    assert found["view"] == view
    table = filled.page(OPER, f"/analytics/{view}.csv?start=1000000000&end=2000000000")
    assert table.headers["content-disposition"] == "attachment"
    assert table.headers["content-type"].startswith("text/csv")
    assert table.body.decode().splitlines()[0].split(",")[0] == found["columns"][0]["name"]
    if found["charts"]:
        chart = filled.page(OPER, f"/analytics/{view}.svg?start=1000000000&end=2000000000")
        assert chart.headers["content-type"].startswith("image/svg+xml")
        assert "sha256-" in chart.headers["content-security-policy"]
        ET.fromstring(chart.body)  # noqa: S314 our own output
    assert filled.page(OPER, f"/analytics/{view}.99.svg").status == 404


def test_the_dashboard_is_fetched_by_a_page_of_links(hub: Rig) -> None:
    """The first page has a link to each view at once and the address of the charts; after these it has them itself."""
    filled, now = with_jobs(hub), int(time.time())
    upsert_jobs(hub.store, [record(9, "alice", submit=now - 7300, start=now - 7200, end=now - 3600, elapsed_s=3600)])
    assert 'href="/analytics"' in filled.page(OPER, "/me").body.decode()
    first = filled.page(OPER, "/analytics?days=90").body.decode()
    assert all(f'href="/analytics/{view}?days=90"' in first for view in VIEWS)
    assert 'hx-get="/analytics?days=90&amp;charts=1"' in first
    assert 'class="chart"' not in first
    charts = filled.page(OPER, "/analytics?days=90&charts=1").body.decode()
    assert all(f'href="/analytics/{view}?days=90"' in charts for view in VIEWS)
    assert 'class="chart"' in charts
    assert "<script>" not in charts.replace("<script src=", "")
    assert filled.page(OPER, "/analytics?days=90").body.decode() == charts
    assert "hx-get" in filled.page(OPER, "/analytics?days=90&clusters=gw").body.decode()
    assert filled.page(OPER, "/analytics?days=x").status == 400


def test_ordinary_users_see_none(filled: Rig) -> None:
    """Neither the list nor a view in any form, nor a link to them."""
    for target in ("/analytics", "/analytics/jobs", "/analytics/jobs.json", "/analytics/jobs.svg"):
        assert filled.page(ALICE, target).status == 403, target
    assert "/analytics" not in filled.page(ALICE, "/me").body.decode()


@pytest.mark.parametrize("query", ["days=x", "start=-1", "page=0x1", "clusters=" + "x" * 300, "offset=999999"])
def test_bad_parameters_are_one_line(filled: Rig, query: str) -> None:
    """Each is a 400 in the layout of all pages that names the parameter."""
    answer = filled.page(OPER, f"/analytics/jobs?{query}")
    assert answer.status == 400
    assert query.partition("=")[0] in answer.body.decode()


def test_a_view_that_there_is_not(filled: Rig) -> None:
    """A 404 in the layout of all pages."""
    assert filled.page(OPER, "/analytics/nothing").status == 404


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_beside_the_period_before(filled: Rig, view: str) -> None:
    """One parameter makes it a comparison: HTML, JSON, CSV and SVG of two windows, and links that keep both."""
    asked = f"{EDGES}&compare=previous"
    answer = filled.page(OPER, f"/analytics/{view}?{asked}")
    text = answer.body.decode()
    assert answer.status == 200, text
    fixed = (
        f"start={HOUR - 86400}&amp;end={HOUR + 86400}&amp;other_start={HOUR - 3 * 86400}&amp;other_end={HOUR - 86400}"
    )
    assert f'href="/analytics/{view}?{fixed}"' in text
    found = convert(json.loads(filled.page(OPER, f"/analytics/{view}.json?{asked}").body), ComparisonDocument)
    assert (found.before.end, found.after.start) == (HOUR - 86400, HOUR - 86400)
    linked = filled.page(OPER, f"/analytics/{view}.json?{fixed.replace('&amp;', '&')}")
    assert convert(json.loads(linked.body), ComparisonDocument).changes == found.changes
    table = filled.page(OPER, f"/analytics/{view}.csv?{asked}").body.decode().splitlines()
    assert table[0] == "id,means,unit,before,after,difference,low,high,beyond_noise"
    assert len(table) == 1 + len(found.changes)
    assert text.index("<h1>") < text.index('<form class="filters"'), "the answer is the first line"
    chart = filled.page(OPER, f"/analytics/{view}.svg?{asked}")
    if found.before.charts or found.after.charts:
        assert chart.headers["content-type"].startswith("image/svg+xml")
        ET.fromstring(chart.body)  # noqa: S314 our own output
        assert f'href="/analytics/{view}.svg?{fixed}' in text
    assert filled.page(OPER, f"/analytics/{view}.99.svg?{asked}").status == 404


def test_two_systems_are_beside_each_other(hub: Rig) -> None:
    """Clusters that differ are named in the headings; an unknown one has nothing and fails nothing."""
    filled = with_jobs(hub)
    upsert_jobs(filled.store, [record(9, "alice", cluster="other")])
    text = filled.page(OPER, f"/analytics/jobs?{EDGES}&clusters=gw&other_clusters=other").body.decode()
    assert "<h2>other</h2>" in text
    assert "<h2>gw</h2>" in text
    assert filled.page(OPER, f"/analytics/waits?{EDGES}&other_clusters=nothing").status == 200


def test_nothing_to_compare_is_the_view(filled: Rig) -> None:
    """`compare=none` drops what the link names; a user gets neither."""
    other = f"other_start={HOUR - 9 * 86400}&other_end={HOUR - 5 * 86400}"
    assert "How this is computed" in filled.page(OPER, f"/analytics/jobs?{EDGES}&{other}&compare=none").body.decode()
    assert "What changed" in filled.page(OPER, f"/analytics/jobs?{EDGES}&{other}").body.decode()
    assert filled.page(ALICE, f"/analytics/jobs?{EDGES}&compare=previous").status == 403
    for bad in ("compare=x", "other_start=-1", "other_clusters=" + "x" * 300, f"other_start={HOUR}&other_end={HOUR}"):
        assert filled.page(OPER, f"/analytics/jobs?{EDGES}&{bad}").status == 400, bad

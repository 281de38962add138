"""The dashboard and the charts of views in a browser: at every width, fetched after the page, zoomed."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.conftest import Reader, Readers, readers
from tests.browser.scene import OPER
from tests.browser.window import SCHEMES, Scheme, keep_picture, show
from tests.integration.hub.rig import Rig

PAGES = {
    "dashboard": "/analytics?days=7",
    "view-jobs": "/analytics/jobs?days=30",
    "view-balance": "/analytics/balance?days=30",
}


@pytest.fixture(scope="module", params=PAGES)
def loaded(request: pytest.FixtureRequest, scene: Rig, browser: Browser) -> Iterator[tuple[str, Reader]]:
    """Load a page once, for all widths and schemes; the charts of the view are zoomed."""
    with readers(scene, browser) as reader:
        found = reader(OPER)
        found.open(PAGES[request.param])
        if request.param == "view-jobs":
            zoomed(found.page)
        yield request.param, found


def zoomed(page: Page) -> None:
    """Open the first chart with zoom."""
    page.get_by_role("button", name="Zoom and filter").first.click()
    page.wait_for_selector(".uplot")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [360, 1440])
def test_a_page_is_whole(loaded: tuple[str, Reader], width: int, scheme: Scheme) -> None:
    """The policy refuses nothing, no script fails, axe finds nothing, and nothing scrolls sideways."""
    name, found = loaded
    show(found.page, width, scheme)
    keep_picture(found.page, f"{name}-{width}-{scheme}")
    assert found.violations() == []
    assert found.page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert found.axe() == []
    assert found.broken() == []


def test_the_charts_come_after_the_page(reader: Readers) -> None:
    """The page has links at once; the dashboard takes their place, with where the GPU-hours went in the first line."""
    found = reader(OPER)
    found.open("/analytics?days=365")
    found.page.wait_for_selector(".dashboard svg.chart")
    assert "GPU-hours of the machine" in found.page.locator("h1").inner_text()
    assert found.page.locator("h1").count() == 1
    found.page.get_by_role("link", name="Which accounts and users waste GPU-hours, and by what?").click()
    found.page.wait_for_url("**/analytics/waste?days=365")


def test_without_scripts_the_charts_are_behind_a_link(reader: Readers) -> None:
    """A browser without JavaScript has the links and one to the dashboard; a view has its drawings and no buttons."""
    found = reader(OPER, java_script_enabled=False)
    found.page.goto(f"{found.origin}/analytics?days=90")
    found.page.get_by_role("link", name="Show the charts").click()
    assert found.page.locator(".dashboard svg.chart").count() > 3
    found.page.goto(f"{found.origin}/analytics/jobs?days=30")
    assert found.page.locator("svg.chart").count() > 1
    assert found.page.get_by_role("button", name="Zoom and filter").count() == 0


def test_a_chart_is_zoomed_and_filtered(reader: Readers) -> None:
    """Dragging narrows the dates, All shows the whole window, a series is switched off, and the drawing comes back."""
    found = reader(OPER)
    found.open("/analytics/jobs?days=30")
    page, drawing = found.page, found.page.locator(".for-desk").first
    zoomed(page)
    assert not drawing.is_visible()
    first, last = page.get_by_label("From"), page.get_by_label("to", exact=True)
    whole = first.input_value(), last.input_value()
    box = page.locator(".u-over").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 100, steps=4)
    page.mouse.up()
    page.wait_for_function("(whole) => document.querySelector('input[name=from]').value > whole", arg=whole[0])
    page.get_by_role("button", name="All", exact=True).click()
    page.wait_for_function("(whole) => document.querySelector('input[name=from]').value === whole", arg=whole[0])
    assert last.input_value() == whole[1]
    page.get_by_role("checkbox", name="failed").uncheck()
    page.mouse.move(box["x"] + box["width"] * 0.97, box["y"] + 100)
    told = page.locator(".chart-of [role=status]").first
    told.get_by_text("completed").wait_for()
    assert "failed" not in told.inner_text()
    page.get_by_role("button", name="Back to the whole chart").click()
    assert drawing.is_visible()
    assert found.violations() == []


def test_rows_of_a_table_are_filtered(reader: Readers) -> None:
    """A word leaves only the rows with it; without a word all rows are back."""
    found = reader(OPER)
    found.open("/analytics/jobs?days=30")
    rows = found.page.locator(".view-table").first.locator("tbody tr:visible")
    every = rows.count()
    found.page.get_by_label("Filter these rows").fill("no such day")
    assert rows.count() == 0
    found.page.get_by_label("Filter these rows").fill("")
    assert rows.count() == every > 20


def test_a_hub_that_is_away_leaves_the_drawing(reader: Readers) -> None:
    """Where the data cannot be fetched, the drawing stays and one sentence says so."""
    found = reader(OPER)
    found.open("/analytics/jobs?days=30")
    found.page.route("**/jobs.json*", lambda route: route.abort())
    found.page.get_by_role("button", name="Zoom and filter").first.click()
    found.page.get_by_text("The hub does not answer").wait_for()
    assert found.page.locator(".for-desk").first.is_visible()

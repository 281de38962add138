"""The pages in a real browser: nothing is refused by the policy, nothing scrolls sideways, axe finds nothing."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser
from tests.browser.conftest import Reader, Readers, readers
from tests.browser.scene import ALICE, ARRAY, BOB, CAROL, HOSTILE, NOBODY, OPER, WASTEFUL
from tests.browser.window import SCHEMES, Scheme, keep_picture, show
from tests.integration.hub.rig import Rig

PAGES: Final = {
    "me": (ALICE, "/me?days=7"),
    "job": (ALICE, f"/jobs/{WASTEFUL}"),
    "array": (ALICE, f"/jobs/{ARRAY}"),
    "unreported": (ALICE, f"/jobs/{NOBODY}"),
    "hostile": (ALICE, f"/jobs/{HOSTILE}"),
    "empty": (BOB, "/me"),
    "account": (CAROL, "/accounts/proj1"),
    "helpdesk": (OPER, "/helpdesk"),
    "helpdesk-job": (OPER, f"/helpdesk?id={WASTEFUL}"),
    "verdicts": (OPER, "/verdicts"),
    "models": (OPER, "/models"),
    "appeals": (OPER, "/appeals"),
    "keeps": (OPER, "/keeps"),
    "simulations": (OPER, "/simulations"),
    "now": (OPER, "/now"),
    "view": (OPER, "/analytics/waste?days=7"),
    "compared": (OPER, "/analytics/waste?days=3&compare=previous"),
    "compared-states": (OPER, "/analytics/states?days=3&compare=previous"),
    "foreign": (BOB, f"/jobs/{WASTEFUL}"),
    "bad": (ALICE, "/me?days=8"),
}


@pytest.fixture(scope="module", params=PAGES)
def loaded(request: pytest.FixtureRequest, scene: Rig, browser: Browser) -> Iterator[tuple[str, Reader]]:
    """Load a page once, for all widths and schemes; return its name and its window."""
    uid, target = PAGES[request.param]
    with readers(scene, browser) as reader:
        found = reader(uid)
        found.open(target)
        yield request.param, found


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [360, 1440])
def test_a_page_is_whole_at_every_width_and_in_both_schemes(
    loaded: tuple[str, Reader], width: int, scheme: Scheme
) -> None:
    """The policy refuses nothing, no script fails, axe finds nothing, and the page is no wider than the window."""
    name, found = loaded
    show(found.page, width, scheme)
    keep_picture(found.page, f"{name}-{width}-{scheme}")
    assert found.violations() == []
    wide = found.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= width
    assert found.axe() == []
    assert found.broken() == []


def test_a_page_is_no_wider_than_any_window(loaded: tuple[str, Reader]) -> None:
    """Also between a telephone and a desk, where tables have little room, nothing scrolls sideways."""
    _, found = loaded
    for width in (320, 480, 701, 800, 900, 980, 981, 1100):
        show(found.page, width, "light")
        assert (width, found.too_wide()) == (width, 0)


def test_filters_and_paging_swap_the_table_and_keep_a_link(reader: Readers) -> None:
    """A filter and a next page replace the table alone, and the address is that of what is shown."""
    found = reader(ALICE)
    found.open("/me?days=7")
    page = found.page
    page.evaluate("() => { window.sameDocument = true; }")
    page.get_by_role("link", name="next").click()
    page.wait_for_url(re.compile("page=2"))
    page.get_by_text("51-", exact=False).first.wait_for()
    page.get_by_label("Name contains").fill("sweep")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url(re.compile("name=sweep"))
    page.get_by_role("link", name=f"{ARRAY}_[0-9]").wait_for()
    assert page.evaluate("() => window.sameDocument") is True
    shown = page.locator("#jobs tbody tr").all_inner_texts()
    found.open("/" + page.url.split("/", 3)[3])
    assert page.locator("#jobs tbody tr").all_inner_texts() == shown
    assert len(shown) == 1
    assert found.violations() == []


def test_times_are_in_the_reader_s_zone_with_utc_beside(reader: Readers) -> None:
    """In Berlin the hour differs from the one in the title."""
    found = reader(ALICE)
    found.open(f"/jobs/{WASTEFUL}")
    shown = found.page.locator("time").first
    title, text = shown.get_attribute("title") or "", shown.inner_text()
    assert title.endswith(" UTC")
    assert text[:16] != title[:16]
    assert (int(text[11:13]) - int(title[11:13])) % 24 in {1, 2}


def test_the_line_to_change_can_be_copied(reader: Readers) -> None:
    """The button puts the line into the clipboard and says so."""
    found = reader(ALICE, permissions=["clipboard-read", "clipboard-write"])
    found.open(f"/jobs/{WASTEFUL}")
    line: Any = found.page.locator(".fix code").first.inner_text()
    found.page.locator(".fix button").first.click()
    found.page.get_by_text("copied").wait_for()
    assert found.page.evaluate("() => navigator.clipboard.readText()") == line


def test_a_page_works_without_scripts(reader: Readers) -> None:
    """Paging and filters are links and forms; times are UTC."""
    found = reader(ALICE, java_script_enabled=False)
    found.open("/me?days=7")
    found.page.get_by_role("link", name="next").click()
    assert "page=2" in found.page.url
    assert found.page.locator("#jobs time").first.inner_text().endswith(" UTC")


def test_names_of_jobs_run_nothing(reader: Readers) -> None:
    """Scripts, tags and templates in names are shown as text; characters that turn the text around as escapes."""
    found = reader(ALICE)
    for job in range(HOSTILE, HOSTILE + 6):
        found.open(f"/jobs/{job}")
        assert found.page.title() == f"Job {job} - gpuwaste"
        assert found.page.locator("main img").count() == 0
        assert "\u202e" not in found.page.content()
        assert found.violations() == []
    found.open("/me?days=7&name=7%20*%207")
    assert "{{ 7 * 7 }}" in found.page.locator("#jobs").inner_text()

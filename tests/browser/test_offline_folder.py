"""The folder of pages in a real browser, from disk: the policy holds, axe finds nothing, no text is over another."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from bench.chart_samples import all_kinds
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, ViewportSize
from tests.browser.window import SCHEMES, Scheme, axe_finds, keep_picture, show
from tests.unit.show.pages.drawings import nasty
from tests.unit.show.pages.test_comparison_page import compared
from tests.unit.show.pages.view_documents import view

from gpuwaste.views.offline_pages import write_folder

_PAGES: Final[dict[Scheme, str]] = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}
_COLLECT: Final = """
window.refusedByPolicy = [];
document.addEventListener("securitypolicyviolation", (refused) => refusedByPolicy.push(refused.violatedDirective));
"""
_OVERLAPS: Final = """() => {
  const found = [];
  for (const chart of document.querySelectorAll("svg.chart")) {
    const frame = chart.getBoundingClientRect();
    if (!frame.width) continue;
    const texts = [...chart.querySelectorAll("text")].map((one) => [one.getBoundingClientRect(), one.lastChild.data]);
    texts.forEach(([one, words], index) => {
      if (one.left < frame.left - 4 || one.right > frame.right + 4) found.push(`outside: ${words}`);
      for (const [other, more] of texts.slice(index + 1)) {
        const beside = one.right < other.left + 1 || other.right < one.left + 1;
        const above = one.bottom < other.top + 4 || other.bottom < one.top + 4;
        if (!beside && !above) found.push(`overlap: ${words} | ${more}`);
      }
    });
  }
  return found;
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder with a view of realistic charts and one of those that nobody would draw on purpose."""
    place = tmp_path_factory.mktemp("offline") / "pages"
    odd = list(nasty().values())
    pages = [
        view(charts=list(all_kinds().values())),
        *(view(view=f"odd{n}", title="Odd", charts=odd[n * 10 : n * 10 + 10]) for n in range(4)),
    ]
    both = compared(before=view(charts=list(all_kinds().values())), after=view(charts=list(all_kinds().values())[:4]))
    return write_folder(place, [*pages, replace(both, view="both")], {}).parent


@pytest.fixture(scope="module", params=["index", "waits", "both", "odd0", "odd1", "odd2"])
def loaded(request: pytest.FixtureRequest, folder: Path, browser: Browser) -> Iterator[Page]:
    """Load a page once, for all widths and schemes."""
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script(_COLLECT)
    page.goto((folder / f"{request.param}.html").as_uri())
    yield page
    context.close()


@pytest.fixture(params=SCHEMES)
def opened(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Any]:
    """Return what opens a file in a window of a width, in one of the two schemes."""
    contexts = []

    def open_page(path: Path, width: int = 1440) -> Page:
        context = browser.new_context(viewport=ViewportSize(width=width, height=900), color_scheme=request.param)
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(_COLLECT)
        page.goto(path.as_uri())
        return page

    open_page.scheme = request.param  # type: ignore[attr-defined]
    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [360, 1440])
def test_a_page_from_disk_is_whole(loaded: Page, width: int, scheme: Scheme) -> None:
    """The stylesheets are let in, nothing else is asked for, nothing scrolls sideways, no text covers another."""
    show(loaded, width, scheme)
    keep_picture(loaded, f"offline-{Path(loaded.url).stem}-{width}-{scheme}")
    assert loaded.evaluate("() => window.refusedByPolicy") == []
    assert loaded.evaluate("() => getComputedStyle(document.body).backgroundColor") == _PAGES[scheme]
    assert loaded.evaluate("() => document.documentElement.scrollWidth") <= width
    assert loaded.evaluate(_OVERLAPS) == []
    assert axe_finds(loaded) == []


def test_the_drawing_fits_the_window(opened: Any, folder: Path) -> None:
    """A telephone shows the narrow drawing alone, a desk the wide one."""
    for width, shown in ((360, "328"), (1440, "960")):
        page: Page = opened(folder / "waits.html", width)
        drawn = page.evaluate(
            "() => [...document.querySelectorAll('svg.chart')].filter((one) => one.getBoundingClientRect().width)"
            ".map((one) => one.getAttribute('width'))"
        )
        assert drawn == [shown] * len(all_kinds())


def test_a_chart_file_has_its_colours(opened: Any, folder: Path) -> None:
    """An SVG that is opened by itself has the page's colour of the scheme and draws its marks in the role's."""
    page: Page = opened(folder / "waits.svg")
    style = page.evaluate(
        "() => [document.documentElement, document.querySelector('.bar')].map((one) => getComputedStyle(one))"
        ".map((one) => [one.backgroundColor, one.fill])"
    )
    assert style[0][0] == _PAGES[opened.scheme]
    assert style[1][1] == {"light": "rgb(0, 85, 140)", "dark": "rgb(75, 163, 227)"}[opened.scheme]


def test_pages_of_the_table_are_reached_by_links(opened: Any, folder: Path) -> None:
    """The links of the table lead to its other pages and back."""
    page: Page = opened(folder / "waits.html")
    page.get_by_role("link", name="next").click()
    page.get_by_text("Rows 51 to 100 of 127").wait_for()
    page.get_by_role("link", name="previous").click()
    page.get_by_text("Rows 1 to 50 of 127").wait_for()

"""A browser window for tests: what the policy refuses, what fails in scripts and what axe finds is collected."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

from playwright.sync_api import Browser, Page

from gpuwaste.core.units import QUANTITY

AXE: Final = Path(__file__).parents[2] / "build" / "browser" / "axe.min.js"
_AXE_RUN: Final = """async () => (await axe.run(document, {
    preload: false, // of stylesheets, for rules that are not run: a page from disk may fetch nothing
    runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"],
  })).violations.map((found) => `${found.id}: ${found.nodes.map((node) => node.html).slice(0, 3).join(" ")}`)"""
Scheme = Literal["light", "dark"]
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")
_COLLECT: Final = """
window.refusedByPolicy = [];
document.addEventListener("securitypolicyviolation", (refused) => {
  refusedByPolicy.push(`${refused.violatedDirective} ${refused.blockedURI}`);
});
"""
_BROKEN: Final = """(pattern) => {
  const found = [], texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (text.parentElement.closest("pre, textarea, svg")) continue;
    for (const match of text.data.matchAll(new RegExp(pattern, "g"))) {
      const range = document.createRange();
      range.setStart(text, match.index);
      range.setEnd(text, match.index + match[0].length);
      if (new Set([...range.getClientRects()].map((one) => one.top)).size > 1) found.push(match[0]);
    }
  }
  return found;
}"""


def show(page: Page, width: int, scheme: Scheme) -> None:
    """Show what is loaded in another width and scheme."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)


def axe_finds(page: Page) -> list[str]:
    """Return what axe finds on a page as it is shown now."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(_AXE_RUN)
    return found


def keep_picture(page: Page, name: str) -> None:
    """Keep a picture of the whole page in the folder that $GPUWASTE_SHOTS names, for people to look at."""
    if folder := os.environ.get("GPUWASTE_SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@dataclass
class Window:
    """One window of a browser on a site of pages."""

    page: Page
    origin: str
    errors: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, browser: Browser, origin: str, *, width: int = 1440, **options: Any) -> Self:
        """Open one with cookies of its own; `options` are those of a browser's context."""
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, timezone_id="Europe/Berlin", **options)  # type: ignore[arg-type]
        found = cls(context.new_page(), origin)
        found.page.add_init_script(_COLLECT)
        found.page.on("pageerror", lambda error: found.errors.append(str(error)))
        return found

    def open(self, target: str) -> int:
        """Go to a page; returns its status."""
        answer = self.page.goto(f"{self.origin}{target}", wait_until="networkidle")
        assert answer is not None
        return answer.status

    def violations(self) -> list[str]:
        """Return what the policy refused, and what went wrong in scripts."""
        refused: list[str] = self.page.evaluate("() => window.refusedByPolicy")
        return refused + self.errors

    def axe(self) -> list[str]:
        """Return what axe finds on the page."""
        return axe_finds(self.page)

    def broken(self) -> list[str]:
        """Return the numbers with their units that are on two lines."""
        found: list[str] = self.page.evaluate(_BROKEN, QUANTITY.pattern)
        return found

    def too_wide(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        found: int = self.page.evaluate("() => Math.max(0, document.documentElement.scrollWidth - innerWidth)")
        return found

"""A hub with jobs of every kind, and Debian's Chromium looking at its pages as one of its users."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.scene import fill
from tests.integration.hub.rig import Rig, running_hub

CHROMIUM: Final = Path("/usr/bin/chromium")
AXE: Final = Path(__file__).parents[2] / "build" / "browser" / "axe.min.js"
_COLLECT: Final = """
window.refusedByPolicy = [];
document.addEventListener("securitypolicyviolation", (refused) => {
  refusedByPolicy.push(`${refused.violatedDirective} ${refused.blockedURI}`);
});
"""
_AXE_RUN: Final = """async () => (await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}))
  .violations.map((found) => `${found.id}: ${found.nodes.map((node) => node.html).slice(0, 3).join(" ")}`)"""


@dataclass
class Reader:
    """A browser window of one user: they are signed in."""

    rig: Rig
    page: Page
    uid: int
    errors: list[str] = field(default_factory=list)

    def open(self, target: str) -> int:
        """Go to a page; returns its status."""
        answer = self.page.goto(f"http://127.0.0.1:{self.rig.port}{target}", wait_until="networkidle")
        assert answer is not None
        return answer.status

    def violations(self) -> list[str]:
        """Return what the policy refused, and what went wrong in scripts."""
        refused: list[str] = self.page.evaluate("() => window.refusedByPolicy")
        return refused + self.errors

    def axe(self) -> list[str]:
        """Return what axe finds on the page."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: list[str] = self.page.evaluate(_AXE_RUN)
        return found


Readers = Callable[..., Reader]


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Run a hub whose jobs ended in the last days."""
    with running_hub(tmp_path_factory.mktemp("hub")) as rig:
        fill(rig, int(time.time()) // 3600 * 3600)
        yield rig


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a display."""
    if not CHROMIUM.exists():
        pytest.skip("no /usr/bin/chromium: make packages installs it")
    if not AXE.exists():
        pytest.skip("no axe-core: make browser-tools fetches it")
    with sync_playwright() as playwright:
        arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        found = playwright.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield found
        found.close()


@pytest.fixture
def reader(scene: Rig, browser: Browser) -> Iterator[Readers]:
    """Return what opens a window of a user: with a width, another hub than the scene's, a context's options."""
    contexts = []

    def opened(uid: int, rig: Rig = scene, **options: Any) -> Reader:
        size = {"width": options.pop("width", 1440), "height": 900}
        context = browser.new_context(viewport=size, timezone_id="Europe/Berlin", **options)  # type: ignore[arg-type]
        contexts.append(context)
        name, _, value = rig.cookie(uid).partition("=")
        context.add_cookies([{"name": name, "value": value, "url": f"http://127.0.0.1:{rig.port}"}])
        page = context.new_page()
        found = Reader(rig, page, uid)
        page.add_init_script(_COLLECT)
        page.on("pageerror", lambda error: found.errors.append(str(error)))
        return found

    yield opened
    for context in contexts:
        context.close()

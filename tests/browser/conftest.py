"""Debian's Chromium, without a display."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM: Final = Path("/usr/bin/chromium")
AXE: Final = Path(__file__).parents[2] / "build" / "browser" / "axe.min.js"


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

"""Debian's Chromium without a display, driven by playwright: for the tests of pages and for the demo's screenshots.

Its headless shell is used where that is installed: the same engine without the browser's own windows,
less than half of the CPU. `full=True` takes the browser itself.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserType

CHROMIUM: Final = Path("/usr/bin/chromium")
SHELL: Final = Path("/usr/bin/chromium-headless-shell")


def missing() -> str | None:
    """Return why it cannot be started here, None where it can."""
    if find_spec("playwright") is None:
        return "playwright is not installed: make venv installs it"
    return None if CHROMIUM.exists() else f"no {CHROMIUM}: make packages installs it"


@contextmanager
def launched() -> Iterator["Browser"]:
    """Run it; it ends with the block. A thread may have only one such block at a time."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 the demo also runs where it is missing

    with sync_playwright() as playwright, launched_with(playwright.chromium) as browser:
        yield browser


@contextmanager
def launched_with(kind: "BrowserType", *options: str, full: bool = False) -> Iterator["Browser"]:
    """Run it with more options of the command line, within a block of `launched`: `kind` is its browser_type."""
    own = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    program = CHROMIUM if full or not SHELL.exists() else SHELL
    browser = kind.launch(executable_path=str(program), args=[*own, *options])
    try:
        yield browser
    finally:
        browser.close()

"""A hub with jobs of every kind, and Debian's Chromium looking at its pages as one of its users."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser.scene import fill
from tests.browser.window import AXE, Window
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.testing import chromium


@dataclass
class Reader(Window):
    """A window of one user: they are signed in."""


Readers = Callable[..., Reader]


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Run a hub whose jobs ended in the last days."""
    with running_hub(tmp_path_factory.mktemp("hub")) as rig:
        fill(rig, int(time.time()) // 3600 * 3600)
        yield rig


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a display."""
    reason = chromium.missing() or (None if AXE.exists() else "no axe-core: make browser-tools fetches it")
    if reason:
        pytest.skip(reason)
    with chromium.launched() as found:
        yield found


@contextmanager
def readers(scene: Rig, browser: Browser) -> Iterator[Readers]:
    """Return what opens a window of a user: with a width, another hub than the scene's, a context's options."""
    contexts = []

    def opened(uid: int, rig: Rig = scene, **options: Any) -> Reader:
        found = Reader.of(browser, f"http://127.0.0.1:{rig.port}", **options)
        contexts.append(found.page.context)
        name, _, value = rig.cookie(uid).partition("=")
        found.page.context.add_cookies([{"name": name, "value": value, "url": found.origin}])
        return found

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def reader(scene: Rig, browser: Browser) -> Iterator[Readers]:
    """Return what opens windows for a test."""
    with readers(scene, browser) as opened:
        yield opened

"""The script of /enter in a real browser: Debian's Chromium opens a link and is signed in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import Response
from tests.integration.hub.rig import Rig
from tests.integration.hub.sign_in.browser import link_of, pages

from gpuwaste.core.hub_config import WebConfig
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.testing import chromium
from gpuwaste.testing.patience import patient

pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(bool(why := chromium.missing()), reason=str(why)),
]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rig]:
    with pages(tmp_path, WebConfig()) as rig:
        yield rig


def opened(rig: Rig, target: str, shown: str) -> tuple[str, str]:
    """Open a path of the hub; return the page once it shows what the selector says, and what the console said."""
    console: list[str] = []
    with chromium.launched() as browser:
        page = browser.new_page()
        page.set_default_timeout(patient(60) * 1000)
        page.on("console", lambda message: console.append(message.text))
        page.goto(f"http://127.0.0.1:{rig.port}{target}")
        page.locator(shown).first.wait_for()
        return page.content(), "\n".join(console)


def test_a_link_that_is_opened_signs_in(hub: Rig) -> None:
    """The script posts the token by itself: a session is there, the link is used up, the policy refused nothing."""
    link = link_of(hub)
    page, console = opened(hub, f"/enter#{link.partition('#')[2]}", "text=Sign out")
    assert hub.hub.get(Visitors)._sessions.count() == 1
    assert hub.hub.get(Visitors)._links.take(link.partition("#")[2]) is None
    assert link.partition("#")[2] not in page
    assert "Content Security Policy" not in console


def test_a_link_that_was_used_says_so_and_none_leaves_the_form(hub: Rig) -> None:
    """A used token leads to the page that says what to do; without one the form waits for a paste."""
    opened(hub, "/enter#" + "a" * 43, "text=was used already")
    opened(hub, "/enter", 'form[action="/enter"]')
    assert hub.hub.get(Visitors)._sessions.count() == 0


def test_a_link_that_somebody_sent_changes_no_session_by_itself(hub: Rig) -> None:
    """Whoever is signed in and is led to another user's link gets the form: they press its button, or not."""
    theirs, mine = link_of(hub, 1002).partition("#")[2], hub.cookie(1001)

    @hub.hub.app.get("/led-astray")
    async def led_astray() -> Response:
        headers = {"Set-Cookie": f"{mine}; Path=/", "Location": f"/enter#{theirs}"}
        return Response(status_code=303, headers=headers)

    opened(hub, "/led-astray", "text=A session is open in this browser")
    assert hub.hub.get(Visitors)._links.take(theirs) == "bob"
    assert hub.hub.get(Visitors)._sessions.count() == 1

"""The demo's pages in a browser: screenshots, light and dark, and a hub that stays up for a look."""

import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Final, Protocol

from gpuwaste.testing import chromium
from gpuwaste.testing.demo.story import Story
from gpuwaste.testing.patience import patient

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCHEMES: Final = ("light", "dark")
_SIZE: Final = (1280, 800)
_WAIT_MS: Final = 60_000.0  # for a page: the demo's jobs use the same processors
Say = Callable[[str], None]


class SignInSite(Protocol):
    """A site whose users sign in to the hub's pages."""

    def gpuwaste(self, *arguments: str, user: str, check: bool = True) -> CompletedProcess[str]:
        """Run the command as a user."""
        ...

    def command_line(self, *arguments: str, user: str) -> list[str]:
        """Return what runs the command as a user from a shell of this process' user."""
        ...


@dataclass(slots=True)
class PageAlbum:
    """Screenshots of pages as their readers see them, NAME-light.png and NAME-dark.png in a folder."""

    site: SignInSite
    folder: Path
    say: Say
    browser: "Browser | None"
    _windows: "dict[str, tuple[str, Page]]" = field(default_factory=dict)

    def take(self, name: str, user: str, path: str) -> None:
        """Keep a page; an error of the browser is printed and does not end the demo."""
        if self.browser is None:
            return
        try:
            origin, page = self._window(self.browser, user)
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                page.goto(f"{origin}{path}", wait_until="networkidle")
                page.screenshot(path=self.folder / f"{name}-{scheme}.png", full_page=True)
        except Exception as error:  # noqa: BLE001 a picture is none of the demo's checks
            self.say(f"no screenshot of {path}: {_line(error)}")
        else:
            self.say(f"screenshots of {path}: {self.folder / name}-light.png, -dark.png")

    def _window(self, browser: "Browser", user: str) -> "tuple[str, Page]":
        """Return the origin of the pages and a user's own window, signed in by a one-time link."""
        if user not in self._windows:
            page = browser.new_context(viewport={"width": _SIZE[0], "height": _SIZE[1]}).new_page()
            page.set_default_timeout(patient(_WAIT_MS))
            link = one_time_link(self.site, user)
            page.goto(link)
            page.wait_for_url("**/me")
            self._windows[user] = (link.partition("/enter#")[0], page)
        return self._windows[user]


@contextmanager
def page_album(
    site: SignInSite, folder: Path | None, say: Say, missing: Callable[[], str | None] = chromium.missing
) -> Iterator[PageAlbum]:
    """Open an album in a folder; without a folder, or with a reason why Chromium is `missing`, it takes nothing."""
    with ExitStack() as stack:
        browser = None if folder is None else _opened(stack, say, missing())
        if folder is not None and browser is not None:
            folder.mkdir(parents=True, exist_ok=True)
        yield PageAlbum(site, folder or Path(), say, browser)


def take_pages(album: PageAlbum, story: Story, ended: int | None) -> None:
    """Keep alice's pages, and a comparison where `ended` is known: UTC seconds, after the last job."""
    album.take("me", "alice", "/me")
    album.take("job", "alice", f"/jobs/{story.jobs['train-ddp']}")
    if ended is None:
        return
    began, middle = int(story.started), (int(story.started) + ended) // 2
    windows = f"start={middle}&end={ended}&other_start={began}&other_end={middle}"
    album.take("comparison", "root", f"/analytics/waste?{windows}")


def one_time_link(site: SignInSite, user: str) -> str:
    """Return a link that signs a user in."""
    return site.gpuwaste("web", user=user).stdout.strip()


def stay_up(site: SignInSite, users: Sequence[str], say: Say) -> None:
    """Print where the pages are and how to sign in, and wait until this process is interrupted or terminated."""
    link = one_time_link(site, users[0])
    say(f"the hub stays up: {link.partition('/enter#')[0]}/me")
    print(
        f"\nThis link signs you in as {users[0]}, once and within a minute:\n  {link}\nCommands that print more links:"
    )
    for user in users:
        print(f"  {shlex.join(site.command_line('web', user=user))}")
    print("Press Ctrl-C to stop the cluster and the hub.", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        threading.Event().wait()
    say("stopping")


def _opened(stack: ExitStack, say: Say, reason: str | None) -> "Browser | None":
    if reason is None:
        try:
            return stack.enter_context(chromium.launched())
        except Exception as error:  # noqa: BLE001 as above
            reason = f"Chromium does not start: {_line(error)}"
    say(f"no screenshots: {reason}")
    return None


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]

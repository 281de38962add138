"""A copy of a page of the hub as one HTML file: it needs neither the hub nor a network, and runs no script."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.net.addresses import parse_endpoint
from gpuwaste.net.http import HttpExchange, HttpRequest
from gpuwaste.testing.demo.pages import SignInSite, one_time_link
from gpuwaste.testing.patience import patient

_TIMEOUT_S: Final = 30.0
_MAX_BYTES: Final = 1 << 24
_OK: Final = 200
_STYLE: Final = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
_SCRIPT: Final = re.compile(r"<script\b.*?</script>\n?", re.DOTALL)
_HEADING: Final = re.compile(r"<h1\b[^>]*>(.*?)</h1>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True)
class SavedPage:
    """Where the copy is, and the page's heading as text."""

    path: Path
    heading: str


def save_page(site: SignInSite, user: str, target: str, path: Path) -> SavedPage:
    """Sign `user` in by a one-time link and write the page `target` to `path`, its styles included.

    Raises GpuwasteError where the hub does not answer or refuses the page.
    """
    base, _, link = one_time_link(site, user).partition("/enter#")
    server = HttpExchange(parse_endpoint(base), None, patient(_TIMEOUT_S), _MAX_BYTES)
    form = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    entered = server.send(HttpRequest("POST", "/enter", f"link={link}".encode(), form))
    cookie = {"Cookie": entered.headers.get("Set-Cookie", "").partition(";")[0]}
    text = _SCRIPT.sub("", _read(server, target, cookie))
    text = _STYLE.sub(lambda found: f"<style>\n{_read(server, html.unescape(found[1]), cookie)}</style>", text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return SavedPage(path, heading_of(text))


def heading_of(text: str) -> str:
    """Return the first heading of a page without its tags; "" where it has none."""
    found = _HEADING.search(text)
    return " ".join(html.unescape(_TAG.sub("", found[1])).split()) if found else ""


def _read(server: HttpExchange, target: str, headers: Mapping[str, str]) -> str:
    answer = server.send(HttpRequest("GET", target, b"", dict(headers)))
    if answer.status != _OK:
        raise GpuwasteError(f"cannot save the page {target}: the hub answers {answer.status}")
    return answer.body.decode()

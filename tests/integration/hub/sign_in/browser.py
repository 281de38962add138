"""A browser for tests: it keeps cookies, and says where its requests come from as browsers do."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.hub_config import WebConfig
from gpuwaste.core.thread_pool import ThreadPool
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.net.http import UnixConnection
from gpuwaste.testing.patience import patient

PUBLIC = "https://gpuwaste.example.org"
PAGE = "/a-page-of-the-tests"
SAME = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Seen:
    """What came back."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def user(self) -> str:
        """Whose page it is."""
        assert self.status == 200, self.body
        return str(json.loads(self.body)["user"])


@dataclass
class Browser:
    """One browser of a hub, over TCP or over its Unix socket; `base` is what the address bar begins with."""

    rig: Rig
    base: str = PUBLIC
    unix: bool = False
    cookies: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Seen:
        """Send a request, with the cookies; headers of the caller come last and may name Host."""
        sent = {"Host": self.base.partition("://")[2]}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        connection = self._connection()
        try:
            connection.request(method, path, body, sent | (headers or {}))
            answer = connection.getresponse()
            seen = Seen(answer.status, answer.headers, answer.read())
        finally:
            connection.close()
        for line in seen.headers.get_all("Set-Cookie", []):
            name, _, value = line.partition(";")[0].partition("=")
            if "Max-Age=0" in line:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return seen

    def look(self, **headers: str) -> Seen:
        """Look at a page."""
        return self.send("GET", PAGE, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def enter(self, link: str, headers: dict[str, str] | None = None) -> Seen:
        """Do what the script of /enter does with a link."""
        return self.send("POST", "/enter", urlencode({"link": link}).encode(), SAME if headers is None else headers)

    def sign_in(self, uid: int = 1001) -> "Browser":
        """Sign in by a link."""
        seen = self.enter(link_of(self.rig, uid))
        assert seen.status == 303, seen.body
        return self

    def _connection(self) -> HTTPConnection:
        if self.unix:
            return UnixConnection(str(self.rig.socket), 20)
        return HTTPConnection("127.0.0.1", self.rig.port, timeout=patient(20))


def link_of(rig: Rig, uid: int = 1001) -> str:
    """Return a link as `gpuwaste web` prints it for a user."""
    answer = rig.post(b"{}", uid, target="/v1/web/link")
    assert answer.status == 200, answer.body
    url: str = answer.json["url"]
    assert re.fullmatch(rf"{re.escape(rig.hub.config.web.url or 'http')}[^#]*/enter#[\w-]{{43}}", url)
    return url


@contextmanager
def pages(directory: Path, web: WebConfig | None = None, clock: SystemClock | None = None) -> Iterator[Rig]:
    """Run a hub with one page more: it says what its visitor may see, and takes POST."""
    with running_hub(directory, clock=clock, web=web or WebConfig(url=PUBLIC)) as rig:

        @rig.hub.app.api_route(PAGE, methods=["GET", "POST"])
        async def page(request: Request) -> Response:
            scope = await ThreadPool(1).run("", rig.hub.get(Visitors).scope, request)
            found: dict[str, Any] = asdict(scope) | {"accounts": sorted(scope.accounts)}
            return Response(json.dumps(found), media_type="application/json")

        yield rig

"""A visitor of the hub's pages who is not who they say: forged headers, stolen links and cookies, other sites' forms.

Each attack goes over real HTTP to a real hub; beside each refusal stands the honest request that is served.
"""

import logging
import os
import pwd
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.hub.rig import Rig
from tests.integration.hub.sign_in.browser import PAGE, PUBLIC, SAME, Browser, link_of, pages

from gpuwaste.core.hub_config import WebConfig
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.testing.clocks import ShiftedClock

ME = pwd.getpwuid(os.getuid()).pw_name
ANOTHER = "nobody" if os.getuid() == 0 else "root"
HOST = PUBLIC.partition("://")[2]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rig]:
    with pages(tmp_path) as rig:
        yield rig


@pytest.fixture
def behind_proxy(tmp_path: Path) -> Iterator[Rig]:
    with pages(tmp_path, WebConfig(url=PUBLIC, proxy_users=(ME,))) as rig:
        yield rig


def raw(rig: Rig, *lines: bytes, unix: bool = False) -> bytes:
    """Send a request line and headers as they are; return the whole answer."""
    with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as sock:
        sock.settimeout(20)
        sock.connect(str(rig.socket) if unix else ("127.0.0.1", rig.port))
        said = b""
        try:
            sock.sendall(b"\r\n".join((*lines, b"Connection: close", b"", b"")))
            while part := sock.recv(65536):
                said += part
        except (BrokenPipeError, ConnectionResetError):
            pass
    return said


def status(answer: bytes) -> int:
    """Return an answer's status, 0 for a connection that was only closed."""
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_a_header_over_tcp_makes_nobody_a_user(behind_proxy: Rig) -> None:
    """X-Remote-User over TCP is refused, whatever its spelling, and with a session too; over the socket it counts."""
    signed_in = Browser(behind_proxy).sign_in()
    for name in ("X-Remote-User", "x-remote-user", "X-REMOTE-USER"):
        assert Browser(behind_proxy).send("GET", PAGE, headers={name: "oper"}).status == 403
        assert signed_in.send("GET", PAGE, headers={name: "oper"}).status == 403
    assert Browser(behind_proxy).send("GET", PAGE, headers={"X_Remote_User": "oper"}).status == 401
    assert signed_in.look().user == "alice"
    assert Browser(behind_proxy, unix=True).look(X_Remote_User="oper").user == "oper"


def test_a_header_of_another_uid_makes_nobody_a_user(tmp_path: Path) -> None:
    """A local user on the Unix socket who is no proxy and names the operator is refused, with and without a proxy."""
    for users in ((ANOTHER,), ()):
        with pages(tmp_path / str(len(users)), WebConfig(url=PUBLIC, proxy_users=users)) as rig:
            assert Browser(rig, unix=True).look(X_Remote_User="oper").status == 403
            assert Browser(rig, unix=True).look().status == 401


@pytest.mark.parametrize(
    "values",
    [
        (b"alice", b"oper"), (b"alice", b"alice"), (b"alice, oper",), (b"alice,oper",), (b"",), (b"(null)",),
        (b"oper alice",), (b"\xff\xfe",), ("öper".encode(),), (b"../oper",), (b"oper\x7f",), (b"-oper",),
        (b"oper@EXAMPLE.ORG",), (b"a" * 65,), (b"o" * 60_000,),
    ],
    ids=lambda values: repr(values)[:40],
)  # fmt: skip
def test_a_header_that_is_no_single_name_is_refused(behind_proxy: Rig, values: tuple[bytes, ...]) -> None:
    """A header sent twice, a list, an empty one or a text that is no user name is no user, from the proxy too."""
    head = (b"GET " + PAGE.encode() + b" HTTP/1.1", b"Host: " + HOST.encode())
    answer = raw(behind_proxy, *head, *(b"X-Remote-User: " + value for value in values), unix=True)
    assert status(answer) in {400, 403}, answer
    assert status(raw(behind_proxy, *head, b"X-Remote-User: oper", unix=True)) == 200


def test_a_cookie_is_good_for_nothing_after_signing_out(hub: Rig) -> None:
    """A cookie that was copied before the sign-out is replayed after it, and is nobody's."""
    browser = Browser(hub).sign_in()
    copied = dict(browser.cookies)
    assert Browser(hub, cookies=dict(copied)).look().user == "alice"
    browser.send("POST", "/sign-out", headers=SAME)
    assert Browser(hub, cookies=copied).look().status == 401


def test_a_planted_cookie_becomes_no_session(hub: Rig) -> None:
    """A cookie that an attacker planted is not the one that a sign-in gives, and is nobody's after it."""
    planted = {"__Host-gpuwaste": "A" * 43}
    victim = Browser(hub, cookies=dict(planted)).sign_in()
    assert victim.look().user == "alice"
    assert victim.cookies != planted
    assert Browser(hub, cookies=planted).look().status == 401
    attacker = Browser(hub).sign_in(1002)
    known = dict(attacker.cookies)
    victim = Browser(hub, cookies=dict(known)).sign_in()
    assert victim.cookies != known
    assert Browser(hub, cookies=known).look().status == 401


def test_a_cookie_beside_the_real_one_is_not_chosen(hub: Rig) -> None:
    """Two cookies of the name are none: the browser does not say which one was planted."""
    mine, theirs = (Browser(hub).sign_in(uid).cookies["__Host-gpuwaste"] for uid in (1001, 1002))
    for pair in (f"__Host-gpuwaste={theirs}; __Host-gpuwaste={mine}", f"__Host-gpuwaste={mine}; __Host-gpuwaste=x"):
        assert Browser(hub).look(Cookie=pair).status == 401
    assert Browser(hub).look(Cookie=f"gpuwaste={theirs}; __Host-gpuwaste={mine}; a=b").user == "alice"
    assert Browser(hub).look(Cookie=f"gpuwaste={mine}").status == 401


def test_a_link_redeemed_twenty_times_at_once_signs_in_once(hub: Rig) -> None:
    """Of twenty parallel redemptions of one link one succeeds, and a later one fails too."""
    for _ in range(5):
        link = link_of(hub)
        with ThreadPoolExecutor(20) as pool:
            statuses = sorted(pool.map(lambda browser, link=link: browser.enter(link).status, [Browser(hub)] * 20))
        assert statuses == [303, *[403] * 19]
        assert Browser(hub).enter(link).status == 403


def test_a_late_link_is_good_for_nothing(tmp_path: Path) -> None:
    """After 60 s a link signs nobody in; a second before it does."""
    clock = ShiftedClock()
    with pages(tmp_path, clock=clock) as rig:
        late, last = link_of(rig), link_of(rig)
        clock.steady_later_s += 50
        assert Browser(rig).enter(last).status == 303
        clock.steady_later_s += 10
        assert Browser(rig).enter(late).status == 403


def test_a_get_uses_no_link_up(hub: Rig) -> None:
    """Mail scanners, previews and prefetch GET a link, its token in the query too: it signs in afterwards."""
    link = link_of(hub)
    token = link.partition("#")[2]
    browser = Browser(hub)
    for target in ("/enter", f"/enter?link={token}", f"/enter/{token}"):
        for method in ("GET", "HEAD"):
            assert browser.send(method, target).status in {200, 404, 405}
    assert browser.cookies == {}
    assert browser.send("POST", f"/enter?link={token}", headers=SAME).status == 403
    assert browser.enter(link).status == 303


def test_no_line_of_the_log_has_a_secret(hub: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a link nor a cookie nor what a stranger sent is in the log; who signed in and what was refused is."""
    caplog.set_level(logging.DEBUG)
    link = link_of(hub)
    browser = Browser(hub)
    browser.enter(link)
    secrets = [link.partition("#")[2], *browser.cookies.values()]
    browser.enter(link)
    browser.look(X_Remote_User="mallory\x1b[2J")
    browser.look(Host="evil.example\x1b[2J")
    browser.send("POST", PAGE, headers={"Origin": "https://evil.example"})
    browser.send("POST", "/sign-out", headers=SAME)
    text = caplog.text
    assert "alice has signed in" in text
    assert "alice has signed out" in text
    assert all(f"({reason})" in text for reason in ("link", "header", "host", "origin"))
    for secret in (*secrets, "mallory", "evil", "\x1b"):
        assert secret not in text
    assert all(secret not in hub.metrics.text().decode() for secret in secrets)


FOREIGN: tuple[dict[str, str], ...] = (
    {},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "https://evil.example"},
    {"Origin": PUBLIC.replace("https", "http")},
    {"Origin": PUBLIC + ".evil.example"},
    {"Origin": PUBLIC + ":444"},
    {"Origin": PUBLIC + "/"},
    {"Origin": f"https://evil.example#{PUBLIC}"},
    {"Referer": PUBLIC + "/me"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "same-origin, cross-site"},
    {"Sec-Fetch-Site": ""},
    {"Sec-Fetch-Site": "cross-site", "Origin": PUBLIC},
    {"Sec-Fetch-Site": "none", "Origin": PUBLIC},
    {"X-Requested-With": "XMLHttpRequest", "Content-Type": "application/json"},
)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_another_site_s_form_changes_nothing(hub: Rig, headers: dict[str, str]) -> None:
    """A POST with no, a null or a foreign origin is refused, on each page; the session and the link are as before."""
    browser, link = Browser(hub).sign_in(), link_of(hub, 1002)
    assert browser.send("POST", PAGE, headers=headers).status == 403
    assert browser.send("POST", "/sign-out", headers=headers).status == 403
    assert browser.enter(link, headers).status == 403
    assert browser.look().user == "alice"
    for honest in (SAME, {"Origin": PUBLIC}):
        assert browser.send("POST", PAGE, headers=honest).user == "alice"
    assert browser.enter(link).status == 303


def test_another_site_s_form_changes_nothing_through_a_proxy(behind_proxy: Rig) -> None:
    """The proxy names the user for another site's form too: its origin is refused all the same."""
    proxied = Browser(behind_proxy, unix=True)
    for headers in FOREIGN:
        assert proxied.send("POST", PAGE, headers={**headers, "X-Remote-User": "alice"}).status == 403
    assert proxied.send("POST", PAGE, headers={**SAME, "X-Remote-User": "alice"}).user == "alice"


def test_a_sent_origin_twice_is_none(hub: Rig) -> None:
    """Two Sec-Fetch-Site or Origin headers, of which one is right, are refused."""
    cookie = b"Cookie: __Host-gpuwaste=" + Browser(hub).sign_in().cookies["__Host-gpuwaste"].encode()
    head = (b"POST " + PAGE.encode() + b" HTTP/1.1", b"Host: " + HOST.encode(), b"Content-Length: 0", cookie)
    right = b"Sec-Fetch-Site: same-origin"
    assert status(raw(hub, *head, right)) == 200
    assert status(raw(hub, *head, right, b"Sec-Fetch-Site: cross-site")) == 403
    assert status(raw(hub, *head, b"Origin: https://evil.example", b"Origin: " + PUBLIC.encode())) == 403


def test_the_api_knows_no_cookie(behind_proxy: Rig) -> None:
    """An operator's session asks /v1 nothing: 401 over TCP and through the proxy, for questions and for orders."""
    cookies = Browser(behind_proxy).sign_in(1004).cookies
    for unix in (False, True):
        browser = Browser(behind_proxy, unix=unix, cookies=dict(cookies))
        for method, path in (
            ("GET", "/v1/top"), ("GET", "/v1/jobs/7"), ("GET", "/v1/report?cluster=1"), ("POST", "/v1/notices/run"),
            ("POST", "/v1/predict"), ("POST", "/v1/backup"), ("POST", "/v1/web/link"), ("POST", "/v1/hours"),
        ):  # fmt: skip
            assert browser.send(method, path, b"{}" if method == "POST" else b"", SAME).status == 401, path
        assert browser.look().user == "oper"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", f"evil.example:80#{HOST}", f"{HOST}@evil.example", f"{HOST}/v1/health?", f"{HOST}?x=",
        f"{HOST}#", f"{HOST}.evil.example", f"{HOST}:444", f"x{HOST}", "", "127.0.0.1.evil.example", "0.0.0.1",
        "localhost.evil.example", "192.0.2.1", "[::1", "127.0.0.1:99999999", "127.0.0.1:80:80", f"{HOST}, evil.example",
    ],
)  # fmt: skip
def test_another_host_name_gets_no_page(hub: Rig, host: str) -> None:
    """A name that an attacker's DNS points to the hub, or that makes another URL of the request, is refused."""
    browser = Browser(hub).sign_in()
    for method, path in (("GET", PAGE), ("GET", "/enter"), ("POST", "/enter"), ("POST", "/sign-out")):
        assert browser.send(method, path, headers={**SAME, "Host": host}).status in {400, 403}, path
    assert browser.look().user == "alice"


def test_the_url_of_a_request_decides_nothing(hub: Rig) -> None:
    """Headers of proxies, targets with another host and odd paths open no page and no session."""
    token = Browser(hub).sign_in().cookies["__Host-gpuwaste"]
    cookie, name = f"Cookie: __Host-gpuwaste={token}".encode(), b"Host: " + HOST.encode()
    lying = (b"X-Forwarded-Host: " + HOST.encode(), b"X-Forwarded-Proto: https", b"Forwarded: host=" + HOST.encode())
    page = PAGE.encode()
    assert status(raw(hub, b"GET " + page + b" HTTP/1.1", b"Host: evil.example", cookie, *lying)) == 403
    assert status(raw(hub, b"GET " + page + b" HTTP/1.1", name, b"Host: evil.example", cookie)) == 400
    assert status(raw(hub, b"GET " + page + b" HTTP/1.0", cookie)) == 403
    assert status(raw(hub, b"GET http://evil.example" + page + b" HTTP/1.1", name, cookie)) in {400, 404}
    for path in (
        b"/v1/health/.." + page,
        b"/" + page,
        page + b"/",
        b"/%2e%2e" + page,
        b"/v1/top;" + page,
        b"/enter/..",
    ):
        assert status(raw(hub, b"GET " + path + b" HTTP/1.1", name)) in {401, 404}
        moved = raw(hub, b"GET " + path + b" HTTP/1.1", b"Host: evil.example", b"X-Original-URL: " + page)
        assert status(moved) in {403, 404}
    for header in (b"X-Original-URL", b"X-Rewrite-URL", b"X-HTTP-Method-Override"):
        assert status(raw(hub, b"GET /v1/top HTTP/1.1", name, cookie, header + b": /v1/health")) == 401


def test_a_flood_of_sessions_ends_the_flooder_s_own(hub: Rig) -> None:
    """A user who signs in a hundred times has the last eight sessions; others keep theirs."""
    other = Browser(hub).sign_in(1002)
    flood = [Browser(hub).sign_in() for _ in range(100)]
    assert [browser.look().status for browser in flood] == [401] * 92 + [200] * 8
    assert other.look().user == "bob"
    assert hub.hub.get(Visitors)._sessions.count() == 9
    links = [link_of(hub) for _ in range(20)]
    assert [Browser(hub).enter(link).status for link in links] == [403] * 16 + [303] * 4


@pytest.mark.parametrize("size", [9_000, 60_000, 1_000_000])
def test_a_long_cookie_is_not_read(hub: Rig, size: int) -> None:
    """Cookies of kilobytes to a megabyte are nobody's or are refused, and the next request is served."""
    browser = Browser(hub).sign_in()
    token = browser.cookies["__Host-gpuwaste"].encode()
    head = (b"GET " + PAGE.encode() + b" HTTP/1.1", b"Host: " + HOST.encode())
    for filler in (b"a=" + b"b" * size, b"a=b; " * (size // 5), b";" * size, b"__Host-gpuwaste=x;" * (size // 18)):
        answer = raw(hub, *head, b"Cookie: " + filler + b"; __Host-gpuwaste=" + token)
        assert status(answer) in ({401} if size < 60_000 else {0, 400, 401, 431})
    assert browser.look().user == "alice"


def test_bytes_that_are_no_text_are_no_defect(behind_proxy: Rig) -> None:
    """Bytes that are no UTF-8, in cookie, host, header and form, are refused without a defect."""
    junk = bytes(range(128, 256))
    name = b"Host: " + HOST.encode()
    page = b"GET " + PAGE.encode() + b" HTTP/1.1"
    for unix in (False, True):
        assert status(raw(behind_proxy, page, name, b"Cookie: __Host-gpuwaste=" + junk, unix=unix)) == 401
        assert status(raw(behind_proxy, page, b"Host: " + junk, unix=unix)) in {400, 403}
        assert status(raw(behind_proxy, page, name, b"X-Remote-User: " + junk, unix=unix)) == 403
    for body in (
        b"link=" + junk,
        b"link=%ff%fe%00",
        junk,
        b"link=" + b"%23" * 300,
        b"&" * 3000,
        b"link=\0",
        b"=&=&" * 9,
    ):
        assert Browser(behind_proxy).send("POST", "/enter", body, SAME).status in {400, 403}
    assert Browser(behind_proxy).send("POST", "/enter", b"link=" + b"x" * 5000, SAME).status == 413
    assert Browser(behind_proxy).send("POST", "/enter", b"x", {**SAME, "Content-Encoding": "gzip"}).status == 415
    assert Browser(behind_proxy).sign_in().look().user == "alice"


def test_no_answer_is_for_caches_frames_or_other_sites(hub: Rig) -> None:
    """Each page of signing in is kept by no cache, shown in no frame, and read by no other site."""
    browser, link = Browser(hub), link_of(hub)
    answers = [
        browser.look(), browser.send("GET", "/enter"), browser.enter(link), browser.enter(link),
        browser.send("POST", "/sign-out", headers=SAME),
    ]  # fmt: skip
    for seen in answers:
        assert seen.headers["Cache-Control"] == "no-store"
        assert "frame-ancestors 'none'" in seen.headers["Content-Security-Policy"]
        assert not [name for name in seen.headers if name.lower().startswith("access-control")]

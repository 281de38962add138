"""Signing in to the pages and out of them, by a link and by a proxy, on a real hub over HTTP."""

import json
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.integration.hub.rig import Rig
from tests.integration.hub.sign_in.browser import PAGE, PUBLIC, SAME, Browser, link_of, pages

from gpuwaste.core.hub_config import WebConfig
from gpuwaste.hub.roles import Roles
from gpuwaste.testing.clocks import ShiftedClock

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rig]:
    with pages(tmp_path) as rig:
        yield rig


def test_a_link_signs_in_and_signing_out_ends_the_session(hub: Rig) -> None:
    """A user opens a link, sees their page, signs out, and sees nothing any more."""
    browser = Browser(hub)
    assert browser.look().status == 401
    seen = browser.enter(link_of(hub))
    assert (seen.status, seen.headers["Location"]) == (303, "/me")
    assert browser.look().user == "alice"
    assert browser.send("POST", "/sign-out", headers=SAME).status == 200
    assert browser.cookies == {}
    assert browser.look().status == 401


def test_roles_are_those_of_the_api(hub: Rig) -> None:
    """An operator sees all, a coordinator their accounts, a user their own; what is taken back is gone at once."""
    found = {uid: json.loads(Browser(hub).sign_in(uid).look().body) for uid in (1001, 1003, 1004)}
    assert [found[uid]["everything"] for uid in (1001, 1003, 1004)] == [False, False, True]
    assert [found[uid]["accounts"] for uid in (1001, 1003, 1004)] == [[], [["gw", "proj1"]], []]
    operator = Browser(hub).sign_in(1004)
    hub.slurm.levels["oper"] = "None"
    hub.hub.get(Roles)._asked = False
    assert json.loads(operator.look().body)["everything"] is False


def test_the_cookie_is_closed_to_scripts_and_other_hosts(hub: Rig) -> None:
    """Over TLS the cookie is __Host-, Secure, HttpOnly and Lax; on loopback without TLS it has a plain name."""
    line = Browser(hub).enter(link_of(hub)).headers["Set-Cookie"]
    assert line.startswith("__Host-gpuwaste=")
    assert {part.strip().lower() for part in line.split(";")[1:]} == {"httponly", "path=/", "samesite=lax", "secure"}
    local = Browser(hub, "http://localhost:9461")
    line = local.enter(link_of(hub)).headers["Set-Cookie"]
    assert line.startswith("gpuwaste=")
    assert "Secure" not in line
    assert local.look().user == "alice"


def test_each_sign_in_has_a_new_session_and_ends_the_one_before(hub: Rig) -> None:
    """Signing in again in one browser gives another cookie, and the first one is good for nothing."""
    browser = Browser(hub).sign_in()
    first = dict(browser.cookies)
    assert browser.sign_in(1002).look().user == "bob"
    assert browser.cookies != first
    assert Browser(hub, cookies=first).look().status == 401


def test_a_session_ends_after_hours(tmp_path: Path) -> None:
    """A session that is used ends after 12 hours, an unused one after idle_h."""
    clock = ShiftedClock()
    with pages(tmp_path, WebConfig(url=PUBLIC, idle_h=1.0), clock) as rig:
        used, unused = Browser(rig).sign_in(), Browser(rig).sign_in(1002)
        for _ in range(12):
            assert used.look().user == "alice"
            clock.steady_later_s += 3500
        assert unused.look().status == 401
        assert used.look().user == "alice"
        clock.steady_later_s += 1201
        assert used.look().status == 401


def test_the_page_of_a_link_says_what_to_do(hub: Rig) -> None:
    """/enter has a field for a link, a policy without inline code, and leaves the button to who is signed in."""
    browser = Browser(hub)
    seen = browser.send("GET", "/enter")
    assert b'<form method="post" action="/enter">' in seen.body
    assert b"gpuwaste web" in seen.body
    assert seen.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in seen.headers["Content-Security-Policy"]
    assert "unsafe" not in seen.headers["Content-Security-Policy"]
    assert b'"use strict"' in browser.send("GET", "/enter.js").body
    assert b"data-signed-in" in browser.sign_in().send("GET", "/enter").body


def test_a_link_can_be_pasted(hub: Rig) -> None:
    """Without JavaScript the whole link, or its last part, goes into the field."""
    assert Browser(hub).enter(f"  {link_of(hub)}\n").status == 303
    assert Browser(hub).enter(link_of(hub).partition("#")[2]).status == 303


def test_a_proxy_names_the_user(tmp_path: Path) -> None:
    """A process of proxy_users on the Unix socket says who is signed in; no cookie is needed or made."""
    with pages(tmp_path, WebConfig(url=PUBLIC, proxy_users=(ME,))) as rig:
        browser = Browser(rig, unix=True)
        assert browser.look(X_Remote_User="carol").user == "carol"
        assert browser.send("POST", PAGE, headers={**SAME, "X-Remote-User": "carol"}).user == "carol"
        assert browser.cookies == {}
        assert browser.look().status == 401
        assert b"sign out there" in browser.send("POST", "/sign-out", headers={**SAME, "X-Remote-User": "carol"}).body
        assert browser.sign_in().look().user == "alice"


def test_a_proxy_asks_the_api_nothing_for_itself(tmp_path: Path) -> None:
    """A question to /v1 that a proxy passes on needs a credential: the proxy's uid is nobody's."""
    with pages(tmp_path, WebConfig(url=PUBLIC, proxy_users=(ME,))) as rig:
        browser = Browser(rig, unix=True)
        for method, path in (("GET", "/v1/top"), ("POST", "/v1/web/link")):
            assert browser.send(method, path, headers={"X-Remote-User": "oper"}).status == 401
        credential = rig.credential(1001, "POST", "/v1/web/link")
        assert browser.send("POST", "/v1/web/link", headers={"Authorization": credential}).status == 200
    with pages(tmp_path / "2") as rig:
        assert Browser(rig, unix=True).send("POST", "/v1/web/link").status == 200


def test_the_rig_signs_in_for_a_page(hub: Rig, tmp_path: Path) -> None:
    """Tests of pages look at them as a user on loopback, where links lead to the hub's address."""
    with pages(tmp_path / "loopback", WebConfig()) as rig:
        assert rig.page(1001, PAGE).json["user"] == "alice"


def test_a_node_gets_no_link(hub: Rig) -> None:
    """A node's token, which reads no job, gets no link; nor does a uid without a name."""
    assert hub.post(b"{}", 54321, target="/v1/web/link").status == 403
    assert hub.send("POST", "/v1/web/link").status == 401


@pytest.mark.parametrize(
    ("web", "words"),
    [(WebConfig(enabled=False), "enabled is false"), (WebConfig(), "")],
    ids=["off", "on loopback without a URL"],
)
def test_pages_can_be_off(tmp_path: Path, web: WebConfig, words: str) -> None:
    """Where pages are off, each question about them says so; without a URL links lead to the address of the hub."""
    with pages(tmp_path, web) as rig:
        answer = rig.post(b"{}", 1001, target="/v1/web/link")
        if words:
            assert (answer.status, words in answer.json["error"]) == (501, True)
            assert Browser(rig).look().status == 501
            assert Browser(rig).send("GET", "/enter").status == 501
        else:
            assert answer.json["url"].startswith("http://127.0.0.1:9461/enter#")


def test_metrics_count_sign_ins_and_name_nobody(hub: Rig) -> None:
    """Sign-ins, sessions and rejections by reason are figures; no user is among them."""
    Browser(hub).sign_in()
    Browser(hub).enter(PUBLIC + "/enter#x")
    Browser(hub, "http://evil.example").look()
    text = hub.metrics.text().decode()
    found = {
        (sample.name, sample.labels.get("reason", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["gpuwaste_hub_sign_ins_total", ""] == 1
    assert found["gpuwaste_hub_page_sessions", ""] == 1
    assert found["gpuwaste_hub_page_rejections_total", "link"] == 1
    assert found["gpuwaste_hub_page_rejections_total", "host"] == 1
    assert found["gpuwaste_hub_page_rejections_total", "origin"] == 0
    assert "alice" not in text

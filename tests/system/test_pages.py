"""The pages on a real cluster as people use them: signed in by each way, from the waste to the line that ends it."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser
from tests.browser import firefox
from tests.browser.window import AXE, Window, show
from tests.integration.hub.sign_in import apache
from tests.integration.hub.sign_in.browser import PUBLIC
from tests.passable import let_others_through
from tests.system.conftest import fresh_site

from gpuwaste.testing import chromium
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.running_site import Site, SiteOptions

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
SMALL: Final = 51  # jobs: with the wasteful one more than a page has
WIDTHS: Final = (360, 1440)
FIX: Final = "#SBATCH --gres=gpu:a100:1"
_SUBMIT: Final = f"""for n in $(seq {SMALL}); do
  sbatch --parsable --gres=gpu:1 --output=/dev/null --job-name=small-$n --wrap=true || exit 1
done"""


@dataclass
class Scene:
    """A site with a job of alice's that wastes three of its four GPUs, small ones of hers, and one of bob's."""

    site: Site
    wasteful: int

    @property
    def origin(self) -> str:
        """Where the pages are without a proxy."""
        return f"http://127.0.0.1:{self.site.hub_port}"

    def link(self, user: str) -> str:
        """Return what `gpuwaste web` prints for a user."""
        return self.site.gpuwaste("web", user=user).stdout.strip()

    def enter(self, browser: Browser, user: str, **options: Any) -> Window:
        """Open a window and sign a user in by a link."""
        window = Window.of(browser, self.origin, **options)
        window.page.goto(self.link(user))
        window.page.wait_for_url("**/me")
        return window


@pytest.fixture(scope="module")
def scene(cluster: LoopbackCluster, native: Path) -> Iterator[Scene]:
    """Run the jobs and wait until the hub has all of them."""
    site = fresh_site(cluster, native, SiteOptions(interval_s=1.0, ship_every_s=2.0))
    node = next(name for name, found in cluster.nodes.items() if found.minors)
    # Curves are those of this node: on loopback each agent has a port of its own, and the hub's pattern has one.
    site.options.hub = {"finding_min_s": 5.0, "agent_url": f"http://127.0.0.1:{site.exporters[node]}"}
    with site:
        load = "--per-gpu '0=14:92:20000' --for 14"
        wasteful = site.submit("alice", load, gres="gpu:a100:4", job_name="train", nodelist=node)
        site.submit("bob", "--phase 4:80", gres="gpu:1")
        cluster.run(["bash", "-c", _SUBMIT], "alice", timeout_s=120)
        site.wait_reported(wasteful, 4)

        def complete() -> bool:
            jobs = site.json("report", "--user", "alice", user="alice")["jobs"]
            return len(jobs) > SMALL and all(job["end"] for job in jobs)

        wait_until(complete, 180, "all jobs in the hub", poll_s=1.0)
        yield Scene(site, wasteful)
    cluster.reset()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a display."""
    reason = chromium.missing() or (None if AXE.exists() else "no axe-core: make browser-tools fetches it")
    if reason:
        pytest.skip(reason)
    with chromium.launched() as found:
        yield found


@pytest.fixture
def full_browser(browser: Browser) -> Iterator[Browser]:
    """Run the browser that people have, with windows of its own."""
    with chromium.launched_with(browser.browser_type, full=True) as found:
        yield found


def sees_what_the_gpus_did(window: Window) -> None:
    """Hold the job's pictures against its load: one GPU was busy, three did nothing; the node has its curves."""
    strips = window.page.locator(".strip")
    assert strips.count() == 4
    assert window.page.locator(".strip:has(.high)").count() == 1
    assert window.page.locator(".strip:has(.idle):not(:has(.high))").count() == 3
    window.page.locator("#curves").scroll_into_view_if_needed()
    window.page.locator("#curves .plots canvas").nth(3).wait_for()


def test_a_user_finds_their_waste_and_the_line_that_ends_it(scene: Scene, full_browser: Browser) -> None:
    """By a link to /me, from its first line to the job, to the fix and what the GPUs did; back, filter, page, out."""
    window = scene.enter(full_browser, "alice")
    page = window.page
    assert page.locator("h1").inner_text().endswith(").")
    assert page.locator(".fix code").first.inner_text() == FIX
    page.locator("#jobs").get_by_role("link", name=str(scene.wasteful), exact=True).click()
    page.wait_for_url(f"**/jobs/{scene.wasteful}")
    assert re.match(
        rf"Job {scene.wasteful} train: \S+ of its \S+ GPU-(?:hours|minutes) were idle \(7\d %\)",
        page.locator("h1").inner_text(),
    )
    assert page.locator(".fix code").first.inner_text() == FIX
    sees_what_the_gpus_did(window)
    assert window.violations() == []
    page.get_by_role("link", name="My jobs").click()
    page.get_by_role("link", name="next").click()
    page.wait_for_url("**page=2*")
    page.get_by_text("51-", exact=False).first.wait_for()
    page.get_by_label("Name contains").fill("train")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**name=train*")
    page.locator(".pages", has_text="1-1 of 1").wait_for()
    assert page.locator("#jobs tbody tr").count() == 1
    assert window.violations() == []
    link = scene.link("alice")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_text("The session has ended.").wait_for()
    assert window.open("/me") == 401
    page.goto(link)
    page.wait_for_url("**/me")
    again = Window.of(full_browser, scene.origin)
    again.page.goto(link)
    again.page.get_by_text("This link was used already").wait_for()


def test_a_table_leaves_the_page_as_csv_and_json(scene: Scene, browser: Browser) -> None:
    """The links of /me and of the job give all rows with the figures of the page, in both forms."""
    window = scene.enter(browser, "alice")
    for target, rows in (("/me", SMALL + 1), (f"/jobs/{scene.wasteful}", 4)):
        assert window.open(target) == 200
        found = {}
        for form in ("csv", "json"):
            href = window.page.get_by_role("link", name=form, exact=True).first.get_attribute("href")
            answer = window.page.context.request.get(f"{scene.origin}{href}")
            assert answer.status == 200
            found[form] = answer.text()
        assert len(list(csv.DictReader(io.StringIO(found["csv"])))) >= rows, target
        assert json.loads(found["json"])["generated"] > 0
    document = scene.site.json("job", str(scene.wasteful), user="alice")
    assert json.loads(found["json"])["runs"][0]["totals"] == document["runs"][0]["totals"]


def test_a_foreign_job_is_as_none(scene: Scene, browser: Browser) -> None:
    """Bob gets for alice's job, in each form, the 404 that he gets for a job that is not there."""
    window = scene.enter(browser, "bob")
    for form in ("", ".csv", ".json"):
        assert window.open(f"/jobs/{scene.wasteful}{form}") == 404
        foreign = window.page.content()
        assert window.open(f"/jobs/999999{form}") == 404
        assert window.page.content() == foreign
    assert window.open("/users/alice") == 404
    assert window.open("/me") == 200
    assert "train" not in window.page.content()


def found_on(window: Window) -> dict[int, tuple[list[str], list[str], int]]:
    """Return by width what the policy refused, what axe finds, and by how much the page is wider than its window."""
    seen = {}
    for width in WIDTHS:
        show(window.page, width, "light")
        seen[width] = (window.violations(), window.axe(), window.too_wide())
    return seen


@pytest.fixture(scope="module")
def looked_at(scene: Scene, browser: Browser) -> dict[str, dict[int, tuple[list[str], list[str], int]]]:
    """Load each page once as an operator, then those of nobody who is signed in; return what is found on each."""
    window = scene.enter(browser, "root")
    assert window.open("/analytics") == 200
    links = window.page.evaluate("() => [...document.querySelectorAll('nav a, h2 a')].map((one) => one.pathname)")
    assert len(links) >= 15
    found = {}
    for target in [*links, "/users/alice", f"/jobs/{scene.wasteful}"]:
        assert window.open(target) == 200, target
        found[target] = found_on(window)
    window.page.locator("header").get_by_role("button", name="Sign out").click()
    window.page.get_by_text("The session has ended.").wait_for()
    for target in ("/enter", "/me"):
        window.open(target)
        found[f"{target}, signed out"] = found_on(window)
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_whole(looked_at: dict[str, dict[int, tuple[list[str], list[str], int]]], width: int) -> None:
    """For an operator each page is there, and neither the policy nor axe nor the window's width is against it."""
    assert {target: seen[width] for target, seen in looked_at.items()} == dict.fromkeys(looked_at, ([], [], 0))


@pytest.mark.sockets  # Apache's files are where its user may get to
def test_apache_signs_a_user_in(scene: Scene, browser: Browser, tmp_path: Path) -> None:
    """Through a real Apache a browser with alice's password sees alice's pages, no other's, and no way to sign out."""
    if reason := apache.missing():
        pytest.skip(reason)
    site = scene.site
    path = site.directory / "hub" / "pages.sock"
    before = site.options
    site.options = replace(
        before,
        hub={**before.hub, "socket": str(path)},
        web={"url": PUBLIC, "proxy_users": [apache.WORKER]},
    )
    front = apache.Apache(path, apache.write_files(tmp_path))
    try:
        restart_hub(site)
        let_others_through(path.parent)
        front.start()
        rule = f"--host-resolver-rules=MAP {apache.HOST} 127.0.0.1:{front.port}"
        with chromium.launched_with(browser.browser_type, rule) as mapped:
            password = {"username": "alice", "password": "pw"}
            window = Window.of(mapped, PUBLIC, http_credentials=password, ignore_https_errors=True)
            assert window.open("/me") == 200
            assert window.page.locator("h1").inner_text().endswith(").")
            assert window.open(f"/jobs/{scene.wasteful}") == 200, site.hub and site.hub.tail(40)
            assert window.page.locator(".fix code").first.inner_text() == FIX
            assert window.open("/users/bob") == 404
            assert (window.violations(), window.axe()) == ([], [])
        assert front.send("GET", "/me")[0] == front.send("GET", "/me", ("X-Remote-User", "alice"))[0] == 401
    finally:
        front.stop()
        site.options = before
        restart_hub(site)


def test_firefox_shows_the_same(scene: Scene, tmp_path: Path) -> None:
    """Debian's Firefox: link, waste, fix, picture, filter, out; its console has only what the test itself provokes."""
    if reason := firefox.missing():
        pytest.skip(reason)
    with firefox.Firefox(tmp_path) as browser:
        browser.open(scene.link("alice"))
        browser.wait("return location.pathname === '/me'", "/me")
        assert browser.run("return document.querySelector('h1').innerText").endswith(").")
        browser.click(f"a[href='/jobs/{scene.wasteful}']")
        browser.wait(f"return location.pathname === '/jobs/{scene.wasteful}'", "the job")
        assert browser.run("return document.querySelector('.fix code').innerText") == FIX
        assert browser.run("return document.querySelectorAll('.strip .high').length") == 1
        browser.open(f"{scene.origin}/me")
        browser.write("form.filters input[name=name]", "train")
        browser.click("form.filters[hx-get] button")
        browser.wait("return document.querySelectorAll('#jobs tbody tr').length === 1", "one row")
        assert "name=train" in browser.run("return location.search")
        assert browser.run("return document.documentElement.scrollWidth - innerWidth") <= 0
        browser.run("const one = document.createElement('script'); one.text = '1'; document.body.append(one)")
        wait_until(lambda: bool(browser.console()), 30, "what the policy refuses")
        assert [line.partition(":")[0] for line in browser.console()] == ["CSP_CSPInlineScriptViolation2"]
        browser.click("form[action='/sign-out'] button")
        browser.wait("return document.body.innerText.includes('The session has ended.')", "the end")
        browser.open(f"{scene.origin}/me")
        assert browser.run("return document.querySelector('h1').innerText") == "You are not signed in."


def restart_hub(site: Site) -> None:
    """Start the hub again with the site's options of now."""
    assert site.hub is not None
    site.hub.stop()
    site.refresh_config()
    site.start_hub()

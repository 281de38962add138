"""Figure: the hub's pages: milliseconds with 50 readers at once, bytes, paint in Chromium, beside the plain JSON.

The store is made by SQL (bench/year_site.py), small by default; `--home` takes the one that bench.year keeps. The hub
is a process of its own with real munge, and the reader an operator; /users/U is the page that U has at /me. Chromium
draws two pages and the curves of a job of 8 GPUs x 24 h (bench/pages_browser.py). Prints tables, then one line of JSON.
"""

import argparse
import contextlib
import gzip
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from bench.judged import judged
from bench.pages_browser import painted
from bench.year import hub_settings, made, wait_for_quiet
from gpuwaste.core.clock import SystemClock
from gpuwaste.net.hub_client import LINK_PATH
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.lone_hub import LoneHub, private_munged

TARGET_MS: Final = 200
TARGET_B: Final = 150_000
_OK: Final = 200
_ALONE: Final = 20
_WARM_S: Final = 45.0
_PATIENCE_S: Final = 120.0
_PAGES_ONLY: Final = ("/analytics",)
# An ended job of 8 GPUs of a user with many jobs, in the last week.
_JOB: Final = """
SELECT j.printed_id, j."user", j.account
FROM jobs j
JOIN (
    SELECT "user", count(*) AS jobs FROM jobs GROUP BY "user" ORDER BY jobs DESC LIMIT 1 OFFSET 10
) u USING ("user")
WHERE j."end" IS NOT NULL
ORDER BY j.gpus DESC, j."end" DESC
LIMIT 1
"""
# Users with jobs in the last week, none of whom is asked for otherwise.
_USERS: Final = """
SELECT DISTINCT "user" FROM jobs
WHERE "start" > (SELECT max("start") FROM jobs) - 7 * 86400 AND "user" <> $but
ORDER BY hash("user")
LIMIT $users
"""
_MANY: Final = "/users/*"
"""The pages of as many users as there are readers, each asked for by one of them."""


def main() -> int:
    """Make the store, ask a hub, draw in a browser."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=1, help="how often each reader asks for each page")
    parser.add_argument("--home", type=Path, help="directory in which bench.year or this has kept a store")
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--no-json", action="store_true", help="ask for pages alone")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        home = options.home or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuwaste-pages-")))
        figures = made(home / "state", options.nodes, options.days, options.days)
        if not (home / "state" / "rolled.json").exists():
            judged(home / "state", 10.0)
        asked, users = pages_of(home / "state" / "hub.duckdb", options.readers)
        munge = stack.enter_context(private_munged())
        hub = LoneHub(home, munge, hub_settings(home), {"cluster": "bench"})
        stack.callback(hub.stop)
        hub.start()
        wait_for_quiet(hub)
        cookie = signed_in(hub)
        warmed(hub, cookie, asked[0])
        forms = ("",) if options.no_json else ("", ".json")
        figures["pages"] = measured(hub, cookie, asked, options.readers, options.rounds, users=users, forms=forms)
        figures["rss_mb"] = round(hub.peak_rss_b() / 1e6)
        print(f"the hub's peak memory: {figures['rss_mb']} MB")
        if not options.no_browser:
            figures["browser"] = painted(hub.url, cookie, asked[0], asked[1])
    targets = {"target_p95_ms": TARGET_MS, "target_gzip_bytes": TARGET_B}
    print(json.dumps({"bench": "pages", **targets, "readers": options.readers, **figures}))
    return 0


def pages_of(path: Path, readers: int) -> tuple[list[str], list[str]]:
    """Return what is asked for: a user's week, one of their jobs first; and other users' weeks."""
    store = HubStore.open(path, SystemClock(), 512)
    with store.reader() as db:
        job, user, account = db.execute(_JOB).fetchall()[0]
        others = db.execute(_USERS, {"but": user, "users": readers}).fetchall()
    store.close()
    asked = [f"/users/{user}", f"/jobs/{job}", f"/accounts/{account}", "/now", "/verdicts", "/models", "/analytics"]
    return asked, [f"/users/{other}" for (other,) in others]


def signed_in(hub: LoneHub) -> str:
    """Sign this process' user in by a link; return NAME=VALUE of the cookie."""
    link = hub.client().post(LINK_PATH, {})["url"]
    connection = HTTPConnection("127.0.0.1", hub.port, timeout=60)
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/enter", urlencode({"link": link}), headers)
    answer = connection.getresponse()
    answer.read()
    return answer.getheader("Set-Cookie", "").partition(";")[0]


def warmed(hub: LoneHub, cookie: str, path: str) -> None:
    """Read a page for a while, as somebody does in a hub at work: open runs are judged together then."""
    reader, until = PageReader(hub, cookie, path), time.monotonic() + _WARM_S
    while time.monotonic() < until:
        reader.read()
        time.sleep(1)


def measured(
    hub: LoneHub,
    cookie: str,
    asked: Sequence[str],
    readers: int,
    rounds: int,
    *,
    users: Sequence[str],
    forms: Sequence[str],
) -> list[dict[str, Any]]:
    """Time each page and its document, alone and with all readers at once, and many users' pages; print a table."""
    print(f"{'':<30}{'alone':>14}{f'{readers} at once':>24}{'CPU':>8}{'bytes':>10}{'gzip':>8}")
    print(f"{'ms':<30}{'median':>7}{'p95':>7}{'median':>8}{'p95':>8}{'max':>8}{'each':>8}")
    found = []
    for path in asked:
        row: dict[str, Any] = {"path": path}
        for form in forms[:1] if path in _PAGES_ONLY else forms:
            row[form or "page"] = timed(hub, partial(PageReader, hub, cookie, f"{path}{form}"), readers, rounds)
            show(f"{path}{form}", row[form or "page"])
        found.append(row)
        if path == asked[0]:
            found.append(many_users(hub, cookie, users, readers, rounds))
    return found


def many_users(hub: LoneHub, cookie: str, users: Sequence[str], readers: int, rounds: int) -> dict[str, Any]:
    """Time the pages of as many users as there are readers; none of them was asked for before."""
    paths = cycle(users)
    row = timed(hub, lambda: PageReader(hub, cookie, next(paths)), readers, rounds)
    show(_MANY, row)
    return {"path": _MANY, "page": row}


class PageReader:
    """Asks for a page as a browser does, over a connection that stays."""

    def __init__(self, hub: LoneHub, cookie: str, path: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", hub.port, timeout=_PATIENCE_S)
        self._headers = {"Cookie": cookie, "Accept-Encoding": "gzip"}
        self._path = path

    def read(self) -> tuple[int, int]:
        """Return the bytes of the page, and as they travel."""
        self._connection.request("GET", self._path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != _OK:
            raise SystemExit(f"{self._path}: the hub answers {answer.status}")
        packed = answer.getheader("Content-Encoding") == "gzip"
        return len(gzip.decompress(body)) if packed else len(body), len(body)


def timed(hub: LoneHub, make: Callable[[], PageReader], readers: int, rounds: int) -> dict[str, Any]:
    """Return the spread of one reader's times, and of those of many at once, and the hub's CPU time of an answer."""
    first = make()
    sizes = first.read()
    busy_s = hub.cpu_s()
    alone = [taken(first) for _ in range(_ALONE)]
    together: list[float] = []
    barrier = threading.Barrier(readers)

    def reads() -> None:
        reader = make()
        barrier.wait()
        together.extend(taken(reader) for _ in range(rounds))

    threads = [threading.Thread(target=reads) for _ in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(together) != readers * rounds:
        raise SystemExit(f"{readers * rounds - len(together)} of {readers * rounds} answers are missing")
    cpu_ms = 1000 * (hub.cpu_s() - busy_s) / (len(alone) + len(together))
    return {
        "alone": spread(alone),
        "at_once": spread(together),
        "cpu_ms": round(cpu_ms, 1),
        "bytes": sizes[0],
        "gzip_bytes": sizes[1],
    }


def taken(reader: PageReader) -> float:
    """Return the milliseconds of one answer."""
    began = time.perf_counter()
    reader.read()
    return (time.perf_counter() - began) * 1000


def spread(times: Sequence[float]) -> dict[str, float]:
    """Return what the times are."""
    found = sorted(times)
    figures = (found[0], statistics.median(found), found[int(0.95 * (len(found) - 1))], found[-1])
    return dict(zip(("min_ms", "median_ms", "p95_ms", "max_ms"), (round(ms, 1) for ms in figures), strict=True))


def show(name: str, row: dict[str, Any]) -> None:
    """Print a line of the table."""
    alone, many = row["alone"], row["at_once"]
    print(
        f"{name[:30]:<30}{alone['median_ms']:7.0f}{alone['p95_ms']:7.0f}{many['median_ms']:8.0f}{many['p95_ms']:8.0f}"
        f"{many['max_ms']:8.0f}{row['cpu_ms']:8.0f}{row['bytes']:10}{row['gzip_bytes']:8}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())

"""Figure: what others wait while one user floods the hub: seconds of a page and of /v1/health (root).

The hub is a process of its own with real munge and the memory that it has by default; alice and bob are users of this
host, so root runs this. Alice has 40,000 runs; each connection of hers asks without a pause. Strangers send cookies
that nobody was given. Prints a table, then one line of JSON.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import pwd
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.net.hub_client import LINK_PATH
from gpuwaste.net.request_signing import request_digest
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.lone_hub import LoneHub, private_munged

ALICE: Final = "daemon"
BOB: Final = "nobody"
_TASKS: Final = 1500  # of an array
_FIRST: Final = 1_000_000
_PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.25
_IDLE_S: Final = 0.1  # CPU in a second
_BATCH: Final = 5000
_NOBODYS: Final = "gpuwaste=" + "x" * 43


@dataclass(frozen=True, slots=True)
class Flood:
    """Connections, and the target of the nth request."""

    name: str
    connections: int
    target: Callable[[int], str]
    stranger: bool = False


def floods(now: int, arrays: int) -> list[Flood]:
    """Return what alice and strangers do."""
    week = now - now % HOUR_S - 7 * DAY_S
    return [
        Flood("nothing", 0, str),
        Flood("/jobs/ID/changes", 200, lambda n: f"/jobs/{_FIRST + n % arrays * _TASKS}/changes"),
        Flood("/jobs/ID", 200, lambda n: f"/jobs/{_FIRST + n % arrays * _TASKS}"),
        Flood("/me.json, other windows", 8, lambda n: f"/me.json?start={week - n}&end={now - n}"),
        Flood("/me by strangers", 200, lambda _: "/me", stranger=True),
        Flood("/metrics by strangers", 200, lambda _: "/metrics", stranger=True),
    ]


def main() -> int:
    """Fill a store, start a hub, flood it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40_000, help="of alice's")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each flood")
    options = parser.parse_args()
    now = int(time.time())
    with tempfile.TemporaryDirectory(prefix="gpuwaste-flood-") as folder, private_munged() as munge:
        home = Path(folder)
        fill(home / "state" / "hub.duckdb", options.runs, now)
        hub = LoneHub(home, munge, {}, {"cluster": "bench"})
        hub.start()
        try:
            alice, bob = (signed_in(hub, munge, user) for user in (ALICE, BOB))
            print(f"{'':<26}{'bob: /me, s':>24}{'/v1/health, s':>24}  answers to the flood")
            print(f"{'flood':<26}{'median':>8}{'max':>8}{'n':>8}{'median':>8}{'max':>8}{'n':>8}")
            rows = [
                measured(hub, flood, _NOBODYS if flood.stranger else alice, bob, options.seconds)
                for flood in floods(now, max(1, options.runs // _TASKS))
            ]
            rss = round(hub.peak_rss_b() / 1e6)
        finally:
            hub.stop()
    print(f"the hub's peak memory: {rss} MB")
    print(
        json.dumps({"bench": "flood", "runs": options.runs, "seconds": options.seconds, "rss_mb": rss, "floods": rows})
    )
    return 0


def fill(path: Path, runs: int, now: int) -> None:
    """Make the store: arrays of 1,500 tasks of alice's in the last week, one job of bob's."""
    path.parent.mkdir()
    store = HubStore.open(path, SystemClock(), 512)
    for first in range(0, runs + 1, _BATCH):
        made = [run_of(number, runs, now) for number in range(first, min(first + _BATCH, runs + 1))]
        jobs, hours = zip(*made, strict=True)
        upsert_jobs(store, list(jobs))
        upsert_hours(store, list(hours))
    store.close()


def run_of(number: int, runs: int, now: int) -> tuple[JobRecord, AllocationHour]:
    """Return a run of half an hour on one GPU, and its hour; the last one is bob's."""
    user, job_id, first = (ALICE if number < runs else BOB), _FIRST + number, number - number % _TASKS
    start = now - now % HOUR_S - HOUR_S * (2 + number % 160)
    record = JobRecord(
        cluster="bench", job_id=job_id, submit=start - 60, printed_id=f"{_FIRST + first}_{number % _TASKS}", user=user,
        account=user, partition="gpu", start=start, end=start + 1800, elapsed_s=1800, state="COMPLETED", gpus=1,
        nodes=f"gpu{number % 50}", n_nodes=1, cpus=4, alloc_tres="cpu=4,gres/gpu=1", exit_code=0,
    )  # fmt: skip
    row = AllocationHour(
        run_key=RunKey("bench", job_id, start), node=f"gpu{number % 50}", gpu_uuid=f"GPU-{number}", hour_utc=start,
        seq=1,
        t0_ms=start * 1000, t1_ms=start * 1000 + 1_800_000, final=True, util_ms={number % 90: 1_800_000},
    )  # fmt: skip
    return record, row


def signed_in(hub: LoneHub, munge: str, user: str) -> str:
    """Sign a user of this host in by a link; return NAME=VALUE of the cookie."""
    digest = request_digest("POST", LINK_PATH, b"{}")
    made = subprocess.run(
        ["munge", f"--socket={munge}", f"--string={digest}"],
        user=pwd.getpwnam(user).pw_uid, capture_output=True, check=True, text=True,
    )  # fmt: skip
    headers = {"Authorization": "Munge " + made.stdout.replace("\n", ""), "Content-Type": "application/json"}
    connection = HTTPConnection("127.0.0.1", hub.port, timeout=_PATIENCE_S)
    connection.request("POST", LINK_PATH, b"{}", headers)
    link = json.loads(connection.getresponse().read())["url"]
    form = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/enter", urlencode({"link": link}), form)
    answer = connection.getresponse()
    answer.read()
    return answer.getheader("Set-Cookie", "").partition(";")[0]


def measured(hub: LoneHub, flood: Flood, cookie: str, bob: str, seconds: float) -> dict[str, Any]:
    """Flood for a while; time bob's page and the health meanwhile."""
    wait_until_idle(hub)
    context = multiprocessing.get_context("fork")
    stop, answers = context.Event(), context.Queue()
    child = context.Process(target=lambda: answers.put(asyncio.run(flooded(hub.port, flood, cookie, stop))))
    child.start()
    time.sleep(1.0)  # every connection has asked
    times: dict[str, list[float]] = {"/me": [], "/v1/health": []}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for path, found in times.items():
            found.append(answered_s(hub.port, path, bob))
        time.sleep(_PAUSE_S)
    stop.set()
    statuses: Counter[str] = answers.get()
    child.join()
    row = {
        path: {"median_s": statistics.median(found), "max_s": max(found), "n": len(found)}
        for path, found in times.items()
    }
    shown = "".join(f"{one['median_s']:8.3f}{one['max_s']:8.3f}{one['n']:8}" for one in row.values())
    print(f"{flood.name:<26}{shown}  {dict(statuses)}", flush=True)
    return {"flood": flood.name, "connections": flood.connections, "answers": dict(statuses), **row}


def wait_until_idle(hub: LoneHub) -> None:
    """Wait until what the last flood has asked for is done."""
    while True:
        before = hub.cpu_s()
        time.sleep(1.0)
        if hub.cpu_s() - before < _IDLE_S:
            return


def answered_s(port: int, path: str, cookie: str) -> float:
    """Return the seconds until an answer of 200; the patience where there is none."""
    began = time.monotonic()
    connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    with contextlib.suppress(OSError), contextlib.closing(connection):
        connection.request("GET", path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        answer.read()
        if answer.status in {200, 503}:
            return time.monotonic() - began
    return _PATIENCE_S


async def flooded(port: int, flood: Flood, cookie: str, stop: Event) -> Counter[str]:
    """Ask on every connection without a pause; return how often there was which status, "none" for no answer."""
    statuses: Counter[str] = Counter()
    numbers = count()

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET {flood.target(next(numbers))} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode())
        try:
            statuses[(await reader.readline()).decode().split(" ")[1]] += 1
            await reader.read()
        finally:
            writer.close()

    async def asks() -> None:
        while not stop.is_set():
            try:
                await ask()
            except (OSError, IndexError):
                statuses["none"] += 1

    tasks = [asyncio.create_task(asks()) for _ in range(flood.connections)]
    while not stop.is_set():  # noqa: ASYNC110 another process sets it
        await asyncio.sleep(_PAUSE_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return statuses


if __name__ == "__main__":
    sys.exit(main())

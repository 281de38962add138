"""Figure: a year of 2,000 nodes in the hub: roll-up, reports, a backup under ingest (hours; 20 GB in TMPDIR).

The year is made by SQL (bench/year_site.py), rolled up by the hub's own code in a process of its own, and then served
by a real hub with a munge of its own. Prints tables, then one line of JSON. `--home` keeps the store for another run.
"""

import argparse
import contextlib
import grp
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.ingest import make_batches
from bench.judged import judged
from bench.report import job_document_ms
from bench.year_site import USERS, fill, roll_up_at_once
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.rollup import DayPacking, JobPacking, JudgedPacking, Packing, Rollup
from gpuwaste.ledger.run_judging import HANG_LIMITS
from gpuwaste.net.batch import Envelope
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.lone_hub import LoneHub, private_munged
from gpuwaste.testing.process_memory import peak_rss_b

TARGET_MS: Final = 500
GPUWASTE: Final = Path(sys.executable).with_name("gpuwaste")
MEMORY_MB: Final = 512


def main() -> int:
    """Make the year, roll it up, ask the hub."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--rollup-days", type=int, default=3)
    parser.add_argument(
        "--rollup-s", type=int, default=0, help="stop the roll-up after so long and make the other days by SQL; 0: all"
    )
    parser.add_argument(
        "--hours-of-days", type=int, default=10**6, help="make hours of so many last days only, and days before by SQL"
    )
    parser.add_argument("--judge-s", type=float, default=60.0, help="judge for so long, and make the other rows by SQL")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--home", type=Path, help="directory to keep the store in; what is there is used again")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        home = options.home or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuwaste-year-")))
        figures = made(home / "state", options.nodes, options.days, options.hours_of_days) | rolled(
            home / "state", options.rollup_days, options.rollup_s
        )
        figures |= judged(home / "state", options.judge_s) | judged_packed(home / "state", options.rollup_days)
        hub = LoneHub(home, stack.enter_context(private_munged()), hub_settings(home))
        stack.callback(hub.stop)
        hub.start()
        commands(home)
        figures |= reports(home, hub, options.runs)
        figures["job"] = job_document_ms(home / "cli.toml", options.runs, figures["jobs"] // 2)
        figures |= metrics(hub)
        figures |= backup(home, hub)
        figures["rss_mb"] = round(hub.peak_rss_b() / 1e6)
        print(f"peak memory of the hub, MB: reports {figures['rss_reports_mb']}, all {figures['rss_mb']}")
    print(json.dumps({"bench": "year", "nodes": options.nodes, "target_ms": TARGET_MS, **figures}))
    return 0


def made(state: Path, nodes: int, days: int, hours_of_days: int) -> dict[str, Any]:
    """Fill the store, unless it is there."""
    store, note = state / "hub.duckdb", state / "made.json"
    state.mkdir(parents=True, exist_ok=True)
    if not note.exists():
        began = time.monotonic()
        counts = fill(store, nodes, days, int(time.time()) // 3600 * 3600, hours_of_days)
        found = {**counts, "made_s": round(time.monotonic() - began), "hours_mb": size_mb(state)}
        note.write_text(json.dumps(found))
    figures: dict[str, Any] = json.loads(note.read_text())
    print(f"{figures['jobs']} jobs, {figures['hours']} hours, {figures['hours_mb']} MB, made in {figures['made_s']} s")
    return figures


def size_mb(state: Path) -> int:
    """Return the size of the store's files."""
    return round(sum(f.stat().st_size for f in state.glob("hub.duckdb*")) / 1e6)


def rolled(state: Path, days: int, at_most_s: int) -> dict[str, Any]:
    """Roll up in a process of its own, unless that was done."""
    note = state / "rolled.json"
    if not note.exists():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(roll_up, (state, days, at_most_s or 10**9))
        roll_up_at_once(state / "hub.duckdb", int(time.time()) - days * DAY_S)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            packed = pool.apply(pack, (state, days, DayPacking))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            packed |= pool.apply(pack, (state, days, JobPacking))
        note.write_text(json.dumps({**found, **packed, **left(state), "file_mb": size_mb(state)}))
    figures: dict[str, Any] = json.loads(note.read_text())
    print("roll-up: " + ", ".join(f"{name} {value}" for name, value in figures.items()))
    return figures


class WatchedStore(HubStore):
    """A store that notes for how long an exchange kept others from writing."""

    locked_s: tuple[float, ...] = ()

    @contextlib.contextmanager
    def exchanging(self, db: Database) -> Iterator[None]:
        """Time it."""
        with self._timed(), super().exchanging(db):
            yield

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Time it."""
        with self._timed(), super().locked():
            yield

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.locked_s += (time.monotonic() - began,)


def left(state: Path) -> dict[str, int]:
    """Return how many days and hours there are now."""
    db = Database.open(state / "hub.duckdb", "hub")
    counts = db.rows("counts")[0]
    db.close()
    return {"days": counts["days"], "hours_left": counts["hours"]}


def roll_up(state: Path, days: int, at_most_s: int) -> dict[str, Any]:
    """Roll up what is due, without the pauses that the hub makes; called in a fresh process."""
    store = WatchedStore.open(state / "hub.duckdb", SystemClock(), MEMORY_MB)
    began = time.monotonic()
    taken = 0
    for hours in Rollup(store, HANG_LIMITS).steps(int(time.time()) - days * DAY_S):
        taken += hours
        if time.monotonic() - began > at_most_s:
            break
    return {"rolled_hours": taken, **costs("rollup", store, time.monotonic() - began)}


def pack(state: Path, days: int, kind: type[Packing]) -> dict[str, Any]:
    """Pack one table as far as it is due, without pauses; called in a fresh process."""
    store = WatchedStore.open(state / "hub.duckdb", SystemClock(), MEMORY_MB)
    began = time.monotonic()
    moved = sum(kind(store).steps(int(time.time()) - days * DAY_S))
    return {f"packed_{kind.table}": moved, **costs(f"pack_{kind.table}", store, time.monotonic() - began)}


def judged_packed(state: Path, days: int) -> dict[str, Any]:
    """Pack what was judged."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures: dict[str, Any] = pool.apply(pack, (state, days, JudgedPacking))
    print(", ".join(f"{name} {value}" for name, value in figures.items()))
    return figures


def costs(name: str, store: WatchedStore, seconds: float) -> dict[str, Any]:
    """Return what a pass took, and for how long its exchanges kept others waiting; closes the store."""
    longest = sorted(store.locked_s) or [0.0]
    store.close()
    return {
        f"{name}_s": round(seconds),
        f"{name}_lock_median_s": round(statistics.median(longest), 2),
        f"{name}_lock_p99_s": round(longest[int(0.99 * (len(longest) - 1))], 2),
        f"{name}_lock_max_s": round(longest[-1], 2),
        f"{name}_rss_mb": round(peak_rss_b(os.getpid()) / 1e6),
    }


def hub_settings(home: Path) -> dict[str, Any]:
    """Return the hub's section."""
    return {
        "socket": str(home / "hub.sock"),
        "memory_mb": MEMORY_MB,
        "rollup_days": 0,  # done
        "staff_groups": [grp.getgrgid(os.getgid()).gr_name],
    }


def commands(home: Path) -> None:
    """Write the configuration of whoever asks."""
    (home / "cli.toml").write_text(f'[common]\nhub_url = "unix:{home}/hub.sock"\n')


def reports(home: Path, hub: LoneHub, runs: int) -> dict[str, Any]:
    """Time reports as whole processes: of the user in the middle of all users, of a busy one, of the cluster."""
    median = f"user{USERS // 2}"
    kinds = {
        "user_week": (["--user", median], runs),
        "user_year": (["--user", median, "-S", "now-365days"], runs),
        "user_year_json": (["--user", median, "-S", "now-365days", "--json"], max(3, runs // 3)),
        "busy_user_year": (["--user", "user50", "-S", "now-365days"], max(3, runs // 3)),
        "cluster_day": (["--allusers", "-S", "now-1days"], max(3, runs // 5)),
        "cluster_week": (["--allusers"], max(3, runs // 5)),
        "cluster_month": (["--allusers", "-S", "now-30days"], max(3, runs // 5)),
        "cluster_year": (["--allusers", "-S", "now-365days"], max(3, runs // 5)),
    }
    wait_for_quiet(hub)
    print(f"{'whole process, ms':<20}{'min':>8}{'median':>8}{'p95':>8}{'max':>8}{'runs':>6}{'jobs':>8}")
    figures: dict[str, Any] = {}
    for name, (words, count) in kinds.items():
        jobs = json.loads(report(home, *[w for w in words if w != "--json"], "--json").stdout)["job_count"]
        times = sorted(timed(partial(report, home, *words)) for _ in range(count))
        spread = [times[0], statistics.median(times), times[int(0.95 * (count - 1))], times[-1]]
        print(f"{name:<20}" + "".join(f"{ms:8.0f}" for ms in spread) + f"{count:6}{jobs:8}")
        figures[name] = {
            "jobs": jobs,
            "min_ms": round(spread[0]),
            "median_ms": round(spread[1]),
            "max_ms": round(spread[3]),
        }
    figures["rss_reports_mb"] = round(hub.peak_rss_b() / 1e6)
    return figures


def wait_for_quiet(hub: LoneHub, at_most_s: float = 600.0) -> None:
    """Wait until the hub has read its history for predictions, and say how long that took."""
    began = time.monotonic()
    while time.monotonic() - began < at_most_s:
        prediction = json.loads(fetched(hub, "/v1/health"))["prediction"]
        if prediction["state"] in {"ready", "not installed"} or prediction["error"]:
            break
        time.sleep(1)
    print(f"predictions: {prediction['state']} {prediction['error']} after {time.monotonic() - began:.0f} s")


def fetched(hub: LoneHub, path: str) -> bytes:
    """Return what the hub answers to anybody."""
    with urllib.request.urlopen(f"{hub.url}{path}", timeout=60) as answer:  # noqa: S310 its own address
        body: bytes = answer.read()
    return body


def timed(work: Callable[[], Any]) -> float:
    """Return the milliseconds that it takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def report(home: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    """Run one report process."""
    done = subprocess.run(
        [GPUWASTE, "report", "--config", home / "cli.toml", *words], capture_output=True, check=False, timeout=300
    )
    if done.returncode != 0:
        raise SystemExit(f"gpuwaste report {' '.join(words)}: exit code {done.returncode}: {done.stderr.decode()}")
    return done


def metrics(hub: LoneHub) -> dict[str, Any]:
    """Time /metrics."""
    times = sorted(timed(lambda: fetched(hub, "/metrics")) for _ in range(15))
    print(f"/metrics, ms: min {times[0]:.0f}, median {times[7]:.0f}, max {times[-1]:.0f}")
    return {"metrics_ms": round(times[7]), "metrics_max_ms": round(times[-1])}


def backup(home: Path, hub: LoneHub) -> dict[str, Any]:
    """Back up while one node after the other sends hours, and time each request."""
    batches = make_batches(40_000, 1, 100_000)
    envelope, client = Envelope("gw", "n1", "boot", "bench"), hub.client()
    times: list[float] = []
    stop = threading.Event()

    def feed() -> None:
        while not stop.is_set():
            batch = batches[len(times) % len(batches)]
            times.append(timed(partial(client.post_hours, envelope, batch)))
            stop.wait(0.05)

    def ask() -> None:
        while not stop.is_set():
            reads.append(timed(lambda: fetched(hub, "/metrics")))
            stop.wait(0.2)

    reads: list[float] = []
    threads = [threading.Thread(target=work) for work in (feed, ask)]
    for thread in threads:
        thread.start()
    time.sleep(5)
    quiet, quiet_reads = max(times), max(reads)
    times.clear()
    reads.clear()
    target = home / "backup.tar"
    done = subprocess.run(
        [GPUWASTE, "hub", "backup", "--config", home / "cli.toml", target, "--force", "--json"],
        capture_output=True, check=False,
    )  # fmt: skip
    stop.set()
    for thread in threads:
        thread.join()
    if done.returncode:
        raise SystemExit(f"gpuwaste hub backup: {done.stderr.decode()}")
    written = json.loads(done.stdout)
    times.sort()
    figures = {
        "backup_s": written["seconds"],
        "backup_mb": round(written["bytes"] / 1e6),
        "ingest_requests": len(times),
        "ingest_median_ms": round(statistics.median(times)),
        "ingest_p99_ms": round(times[int(0.99 * (len(times) - 1))]),
        "ingest_max_ms": round(times[-1]),
        "ingest_max_before_ms": round(quiet),
        "metrics_max_during_ms": round(max(reads)),
        "metrics_max_before_ms": round(quiet_reads),
    }
    print("backup under ingest: " + ", ".join(f"{name} {value}" for name, value in figures.items()))
    return figures | restored(home, target)


def restored(home: Path, source: Path) -> dict[str, Any]:
    """Restore into a new place and return the seconds."""
    place = home / "restored"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    config = home / "restore.toml"
    config.write_text(f'[hub]\nstate_dir = "{place}"\n')
    seconds = timed(
        lambda: subprocess.run(
            [GPUWASTE, "hub", "restore", "--config", config, source], check=True, capture_output=True
        )
    )
    shutil.rmtree(place)
    source.unlink()
    print(f"restore: {seconds / 1000:.0f} s")
    return {"restore_s": round(seconds / 1000)}


if __name__ == "__main__":
    sys.exit(main())

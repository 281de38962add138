"""Figure: GET /v1/now with 2,000 nodes of 8 GPUs: milliseconds, bytes, 50 readers at once.

The site is made by SQL (bench/year_site.py): every GPU is held, one in six is idle, two nodes in a hundred are silent.
The hub is a process of its own that serves a Unix socket; `top` of the same runs is printed beside. Prints a table,
then one line of JSON.
"""

import argparse
import gzip
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench.report import start_hub
from bench.year_site import fill
from gpuwaste.cli.hub_access import hub_client
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import load_config
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.now.now_document import SlurmNodes, take_now
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.process_memory import peak_rss_b

TARGET_MS: Final = 200
TARGET_B: Final = 150_000
_READERS: Final = 50
_WAITING: Final = """
INSERT INTO jobs BY NAME
SELECT * REPLACE (
    job_id + 100000000 AS job_id, (job_id + 100000000)::VARCHAR AS printed_id, $now - 600 AS submit,
    $now - 600 AS run_start, NULL AS "start", NULL AS "end", '' AS nodes, 0 AS gpus, 'PENDING' AS state
)
FROM jobs LIMIT 20000
"""


def main() -> int:
    """Fill a store, take the figures in this process, then ask a hub."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--days", type=int, default=4)
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-now-") as folder:
        home = Path(folder)
        figures: dict[str, Any] = {"nodes": options.nodes, **site(home / "hub.duckdb", options.nodes, options.days)}
        print(f"{'':<28}{'min':>8}{'median':>8}{'p95':>8}{'max':>8}{'runs':>6}")
        figures["take"] = taken(home, 5)
        hub = start_hub(home)
        try:
            figures |= asked(home, options.runs)
            figures["rss_mb"] = round(peak_rss_b(hub.pid) / 1e6)
        finally:
            hub.terminate()
            hub.wait(30)
    print(f"{figures['bytes']} bytes, {figures['gzip_bytes']} with gzip; the hub's peak memory: {figures['rss_mb']} MB")
    targets = {"target_ms": TARGET_MS, "target_gzip_bytes": TARGET_B}
    print(json.dumps({"bench": "now", **targets, **figures}))
    return 0


def site(path: Path, nodes: int, days: int) -> dict[str, int]:
    """Make the store: last activity as agents tell it, two silent nodes in a hundred, 20,000 jobs that wait."""
    now = int(time.time())
    counts = fill(path, nodes, days, now, days)
    db = Database.open(path, "hub", {"threads": "2"})
    db.execute("UPDATE hours SET last_active_ms = CASE WHEN pct = [0] THEN NULL ELSE t1_ms END")
    silent = "SELECT 'gpu' || n FROM range($nodes) t (n) WHERE n % 50 = 0"
    db.execute(
        f"DELETE FROM hours WHERE hour_utc > $now - 7200 AND node IN ({silent})",  # noqa: S608 own text
        {"now": now, "nodes": nodes},
    )
    db.execute(_WAITING, {"now": now})
    db.execute("CHECKPOINT")
    db.close()
    return counts


def taken(home: Path, runs: int) -> dict[str, float]:
    """Time taking the figures together, as the hub's thread does, on two threads of DuckDB."""
    store = HubStore.open(home / "hub.duckdb", SystemClock(), 512)

    def take() -> None:
        with store.reader() as db:
            take_now(db, "bench", LedgerSettings(), int(time.time()), SlurmNodes(), None)

    spread = timed("taking the figures, ms", take, runs)
    store.close()
    return spread


def asked(home: Path, runs: int) -> dict[str, Any]:
    """Time the answer: one reader, fifty at once, and `top` of the same runs beside it."""
    hub = hub_client(load_config(home / "gpuwaste.toml"), 120.0)
    document = hub.get("/v1/now", {})
    body = json.dumps(document, separators=(",", ":")).encode()
    figures: dict[str, Any] = {
        "totals": document["totals"],
        "bytes": len(body),
        "gzip_bytes": len(gzip.compress(body, 6)),
        "now": timed("GET /v1/now, ms", lambda: hub.get("/v1/now", {}), runs),
        "at_once": at_once(home),
        "top": timed("GET /v1/top, ms", lambda: hub.get("/v1/top", {"limit": 50}), 3),
    }
    return figures


def at_once(home: Path) -> dict[str, float]:
    """Return the spread of fifty answers that are asked for at the same time."""
    times: list[float] = []
    barrier = threading.Barrier(_READERS)

    def read() -> None:
        hub = hub_client(load_config(home / "gpuwaste.toml"), 120.0)
        barrier.wait()
        began = time.perf_counter()
        hub.get("/v1/now", {})
        times.append((time.perf_counter() - began) * 1000)

    readers = [threading.Thread(target=read) for _ in range(_READERS)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return spread_of("50 readers at once, ms", times)


def timed(name: str, act: Callable[[], object], runs: int) -> dict[str, float]:
    """Return the spread of some runs and print it."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1000)
    return spread_of(name, times)


def spread_of(name: str, times: list[float]) -> dict[str, float]:
    """Print and return what the times are."""
    times = sorted(times)
    spread = [times[0], statistics.median(times), times[int(0.95 * (len(times) - 1))], times[-1]]
    print(f"{name:<28}" + "".join(f"{ms:8.0f}" for ms in spread) + f"{len(times):6}")
    return dict(zip(("min_ms", "median_ms", "p95_ms", "max_ms"), (round(ms, 1) for ms in spread), strict=True))


if __name__ == "__main__":
    sys.exit(main())

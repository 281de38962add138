"""The hub's pass over the right sizes on a synthetic site (bench/year_site.py): CPU, and memory above the hub's own."""

import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.year_site import fill, roll_up_at_once
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.right_size.keeper import RightSizes
from gpuwaste.ledger.right_size.reads import DAYS
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.process_memory import peak_rss_b, rss_b

NODES: Final = 600  # of 8 GPUs: about 200,000 batch jobs in 60 days that completed
MEMORY_MB: Final = 512  # as [hub] memory_mb
ROLLUP_DAYS: Final = 3  # as [hub] rollup_days
TARGET_CPU_S: Final = 10.0
TARGET_MIB: Final = 100
_MIB: Final = 1 << 20
_RUNS: Final = "SELECT count(*) FROM jobs WHERE state = 'COMPLETED' AND NOT interactive"


def measure(folder: Path | None, nodes: int) -> dict[str, Any]:
    """Make the site in `folder`, unless it is there, and run two passes in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="gpuwaste-sizes-") as scratch:
        store = (folder or Path(scratch)) / "hub.duckdb"
        if not store.exists():
            store.parent.mkdir(parents=True, exist_ok=True)
            now = int(time.time())
            fill(store, nodes, DAYS, now, ROLLUP_DAYS + 1)
            roll_up_at_once(store, now - ROLLUP_DAYS * DAY_S)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found: dict[str, Any] = pool.apply(_passes, (store,))
    print(f"{found['runs']:,} completed runs, {found['findings']:,} findings; load {os.getloadavg()[0]:.0f}")
    print(f"pass over all users: {found['cpu_s']} CPU s, {found['mib']} MiB above the hub's own")
    print(f"pass over {found['later_findings']:,} findings of users with a new run: {found['later_cpu_s']} CPU s")
    met = found["cpu_s"] <= TARGET_CPU_S and found["mib"] <= TARGET_MIB
    print(f"target: at most {TARGET_CPU_S:.0f} CPU s and {TARGET_MIB} MiB: {'met' if met else 'missed'}")
    return found


def _passes(path: Path) -> dict[str, Any]:
    store = HubStore.open(path, SystemClock(), MEMORY_MB)
    with store.reader() as db:
        for table in ("jobs", "hours", "days"):  # as after a report of the cluster: DuckDB keeps blocks of the file
            db.execute(f"SELECT bit_xor(hash(t)) FROM {table} t").fetchall()  # noqa: S608 own names
        runs = db.execute(_RUNS).fetchall()[0][0]
    part, own_b, began = RightSizes(store, LedgerSettings(), SystemClock()), rss_b(os.getpid()), time.process_time()
    findings = part.step()
    cpu_s, began = time.process_time() - began, time.process_time()
    later = part.step()
    later_cpu_s = time.process_time() - began
    store.close()
    return {
        "runs": runs, "findings": findings, "cpu_s": round(cpu_s, 1), "own_mib": round(own_b / _MIB),
        "mib": round((peak_rss_b(os.getpid()) - own_b) / _MIB), "later_findings": later,
        "later_cpu_s": round(later_cpu_s, 1),
    }  # fmt: skip

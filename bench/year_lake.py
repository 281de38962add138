"""Figure: reports over a year of 10,000 GPUs from a file, and from a lake that it was moved to (--home DIR).

`--home` is the folder of `bench.year`, whose store is copied and stays as it is; without one a year of 1,250 nodes with
8 GPUs is made there first. PostgreSQL is a real one on this machine. Prints tables, then one line of JSON.
"""

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.judged import judged
from bench.move import Pass, fill_lake, measured, quiet, to_lake
from bench.year import commands, hub_settings, judged_packed, made, reports, rolled
from gpuwaste.hub.store_mover import StoreMover
from gpuwaste.store.lake_database import LakeLocation
from gpuwaste.testing.lone_hub import LoneHub, private_munged
from gpuwaste.testing.postgres_server import missing, postgres_server

NODES: Final = 1250
HOURS_OF_DAYS: Final = 6
ROLLUP_DAYS: Final = 3
JUDGE_S: Final = 30.0
TARGET_MS: Final = {"user_year": 1000, "cluster_month": 3000}


def main() -> int:
    """Make a year where there is none; ask a file and a lake."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--home", type=Path, help="folder of bench.year's --home")
    options = parser.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuwaste-year-lake-")))
        home = options.home or scratch
        counts = made(home / "state", NODES, 365, HOURS_OF_DAYS) | rolled(home / "state", ROLLUP_DAYS, 0)
        counts |= judged(home / "state", JUDGE_S) | judged_packed(home / "state", ROLLUP_DAYS)
        figures: dict[str, Any] = {"file": asked(home, {}, options.runs)}
        server = stack.enter_context(postgres_server())
        place = LakeLocation(server.new_database(), scratch / "lake")
        copy = scratch / "moved"
        (copy / "state").mkdir(parents=True)
        shutil.copy(home / "state" / "hub.duckdb", copy / "state")
        mover = StoreMover(copy / "state", place, quiet)
        for name, work in (("to_lake_first", fill_lake), ("to_lake_last", to_lake)):
            figures[name] = told(name, measured(partial(work, mover)))
        keys = {"store": "lake", "lake_catalog": place.catalog, "lake_data": str(place.data)}
        figures["lake"] = asked(copy, keys, options.runs)
    print(json.dumps({"bench": "year_lake", "jobs": counts["jobs"], "target_ms": TARGET_MS, **figures}))
    return 0


def asked(home: Path, keys: dict[str, Any], runs: int) -> dict[str, Any]:
    """Time the reports of a hub with these settings, which runs for that long."""
    print(f"from a {keys.get('store', 'file')}")
    with private_munged() as munge:
        hub = LoneHub(home, munge, hub_settings(home) | keys)
        try:
            hub.start()
            commands(home)
            return reports(home, hub, runs)
        finally:
            hub.stop()


def told(name: str, done: Pass) -> dict[str, float]:
    """Print a pass of the move, and return its figures."""
    rows_s = round(done.rows / done.seconds)
    print(
        f"{name}: {done.rows} rows, {done.seconds:.1f} s, {rows_s} rows/s, {done.cpu_s:.1f} s of CPU, {done.peak_mb} MB"
    )
    return {"rows": done.rows, "s": round(done.seconds, 1), "rows_s": rows_s, "cpu_s": round(done.cpu_s, 1)}


if __name__ == "__main__":
    sys.exit(main())

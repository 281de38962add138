"""Figure: the hub's store moved from a file to a lake and back: rows a second, downtime (--nodes 2000 --days 365).

The store is a drawn site's (bench/year_site.py), the lake's catalog a real PostgreSQL on this machine. Each way is a
first pass, as while the hub runs, and a last one, which copies what changed in between: the rows of one more day. Each
pass is a process of its own. Prints a table, then one line of JSON.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.year_site import fill
from gpuwaste.core.units import DAY_S
from gpuwaste.hub.store_mover import StoreMover
from gpuwaste.store.database import Database
from gpuwaste.store.hub.store_move import MoveResult
from gpuwaste.store.lake_database import LakeDatabase, LakeLocation
from gpuwaste.testing.postgres_server import missing, postgres_server
from gpuwaste.testing.process_memory import peak_rss_b

TARGET_ROWS_S: Final = 100_000
_CHANGED: Final = "UPDATE hours SET seq = seq + 1 WHERE hour_utc >= (SELECT max(hour_utc) FROM hours) - $day"


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did and took."""

    rows: int
    copied: int
    seconds: float
    cpu_s: float
    peak_mb: int


def main() -> int:
    """Make a store, move it to a lake and back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--days", type=int, default=60)
    options = parser.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory(prefix="gpuwaste-move-") as directory, postgres_server() as server:
        state = Path(directory) / "state"
        state.mkdir()
        counts = fill(state / "hub.duckdb", options.nodes, options.days, 1_790_000_000, 10**6)
        print(f"{counts['hours']} hours, {counts['jobs']} jobs, file {size_mb(state)} MB")
        mover = StoreMover(state, LakeLocation(server.new_database(), Path(directory) / "lake"), quiet)
        figures = both_ways(mover)
    print(f"{'pass':<24}{'rows':>12}{'copied':>12}{'s':>9}{'CPU s':>9}{'rows/s':>10}{'MB':>7}")
    for name, done in figures.items():
        print(
            f"{name:<24}{done.rows:>12}{done.copied:>12}{done.seconds:>9.1f}{done.cpu_s:>9.1f}"
            f"{done.rows / done.seconds:>10.0f}{done.peak_mb:>7}"
        )
    said = {
        name.replace(", ", "_").replace(" ", "_"): {
            "rows_s": round(done.rows / done.seconds),
            "cpu_rows_s": round(done.rows / done.cpu_s),
            "copied": done.copied,
            "s": round(done.seconds, 1),
        }
        for name, done in figures.items()
    }
    print(json.dumps({"bench": "move", "hours": counts["hours"], "target_rows_s": TARGET_ROWS_S, **said}))
    return 0


def both_ways(mover: StoreMover) -> dict[str, Pass]:
    """Move the store to the lake, and back to a new file."""
    found = {"to lake, first": measured(partial(fill_lake, mover))}
    with closing(Database.open(mover.store, "hub")) as db:
        db.execute(_CHANGED, {"day": DAY_S})
    found["to lake, last"] = measured(partial(to_lake, mover))
    mover.store.unlink()
    found["to file, first"] = measured(partial(fill_file, mover))
    with closing(LakeDatabase.open_lake(mover.lake, "hub")) as lake:
        lake.execute(_CHANGED, {"day": DAY_S})
    found["to file, last"] = measured(partial(to_file, mover))
    return found


def fill_lake(mover: StoreMover) -> MoveResult:
    """Do the first pass to the lake."""
    return mover.fill_lake(mover.store)


def to_lake(mover: StoreMover) -> MoveResult:
    """Do the last pass to the lake."""
    return mover.to_lake()


def fill_file(mover: StoreMover) -> MoveResult:
    """Do the first pass to the file."""
    return mover.fill_file()


def to_file(mover: StoreMover) -> MoveResult:
    """Do the last pass to the file."""
    return mover.to_file(force=False)[0]


def measured(work: Callable[[], MoveResult]) -> Pass:
    """Do it in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_timed, (work,))


def _timed(work: Callable[[], MoveResult]) -> Pass:
    began, cpu = time.monotonic(), time.process_time()
    done = work()
    seconds, used = time.monotonic() - began, time.process_time() - cpu
    return Pass(done.rows, done.copied, seconds, used, peak_rss_b(os.getpid()) >> 20)


def quiet(*_state: Any) -> None:
    """Show nothing."""


def size_mb(state: Path) -> int:
    """Return the size of the store's file."""
    return (state / "hub.duckdb").stat().st_size >> 20


if __name__ == "__main__":
    sys.exit(main())

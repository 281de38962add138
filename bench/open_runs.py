"""Figure: CPU of judging 20,000 open runs once a minute, all or those that changed, and of a user's report with them.

The site is made by SQL (bench/year_site.py): 6,100 nodes and 40 days, 1.7 million runs. Agents ship every fifteen
minutes, so a fifteenth of the runs changes in a minute. `sums kept` is what an incremental pass cannot leave out: time
goes on in each open run, so its row is made anew from the sums of what was seen. Prints a table, then a line of JSON.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import accumulate, count
from pathlib import Path
from typing import Final

from bench.judged import judge_at_once
from bench.year_site import fill
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.open_runs import OpenRunJudge, OpenRunSnapshot
from gpuwaste.ledger.reports.report_builder import report_document, report_totals, totals_by_account
from gpuwaste.ledger.run_judging import Selection, job_ledgers, judge_runs, judge_seen, name_causes
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

TARGET_S: Final = 0.6  # of CPU a minute: one percent of a core
SHIPMENTS: Final = 15  # minutes from one to the next
_DAYS: Final = 7
_HOURS_OF_DAYS: Final = 5  # a job lasts four at most
_SETTINGS: Final = LedgerSettings()
_USERS: Final = 'SELECT "user", count(*) FROM jobs WHERE "end" IS NULL GROUP BY "user" ORDER BY "user"'
Window = tuple[int, int]


def main() -> int:
    """Fill a store and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=6100)
    parser.add_argument("--days", type=int, default=40)
    parser.add_argument("--user", default="user500")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-open-") as folder:
        path, now = Path(folder) / "hub.duckdb", int(time.time())
        counts = fill(path, options.nodes, options.days, now, _HOURS_OF_DAYS)
        store = HubStore.open(path, SystemClock(), 1024)
        judge_at_once(store, _SETTINGS, now)
        figures = Figures(options.runs)
        measure(figures, store, now, options.user)
        store.close()
    result = {"bench": "open-runs", "target_s": TARGET_S, **counts, "load": round(os.getloadavg()[0], 1)}
    print(json.dumps({**result, "cpu_s": figures.found}))
    return 0


class Figures:
    """CPU seconds of this process by name, each the median of some runs."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self.found: dict[str, float] = {}
        print(f"{'CPU, s':<44}{'min':>8}{'median':>8}{'max':>8}")

    def add(self, name: str, act: Callable[[], object]) -> None:
        """Run it and print what it took."""
        times = []
        for _ in range(self._runs):
            began = time.process_time()
            act()
            times.append(time.process_time() - began)
        self.found[name] = round(statistics.median(times), 3)
        print(f"{name:<44}{min(times):8.2f}{self.found[name]:8.2f}{max(times):8.2f}")


def measure(figures: Figures, store: HubStore, now: int, user: str) -> None:
    """Measure passes over the open runs, and reports with and without what they made."""
    judge, minutes = OpenRunJudge(store), count(now, 60)
    start = now - now % DAY_S - _DAYS * DAY_S
    window, before = (start, now), (2 * start - now + now % DAY_S, start)

    def taken(at: int, *windows: tuple[int, int | None]) -> OpenRunSnapshot:
        found = judge.take(_SETTINGS, at, windows, 0)
        assert found is not None  # noqa: S101 a bench that lies is worse than none
        return found

    print(f"{taken(now).runs} open runs")
    figures.add("all open runs", lambda: taken(next(minutes)))
    figures.add("all and the parts at two windows", lambda: taken(next(minutes), (start, None), before))
    with store.reader() as db, db.transaction():
        measure_parts_of_a_pass(figures, db, now)
    kept = taken(now, (start, None), before)
    with store.reader() as db:
        measure_reports(figures, db, (user, window, before), now, kept)


def measure_parts_of_a_pass(figures: Figures, db: Database, now: int) -> None:
    """Measure what an incremental pass has to do: judge the runs that changed, and go on with all from kept sums."""
    users = db.execute(_USERS).fetchall()
    sums = list(accumulate(runs for _, runs in users))
    last = bisect_left(sums, sums[-1] / SHIPMENTS)
    every = Selection(0, now + 1, rules=-1, judged_until=int(now - _SETTINGS.pending_s))
    some = replace(every, users=(users[0][0], users[last][0]))
    figures.add(f"{sums[last]} runs that changed", lambda: judge_runs(db, some, _SETTINGS, now))
    judge_runs(db, every, _SETTINGS, now)
    figures.add("all, sums kept", lambda: judge_seen(db, _SETTINGS, now))
    figures.add("their findings", lambda: name_causes(db, job_ledgers(db, candidates=True), _SETTINGS))


def measure_reports(
    figures: Figures, db: Database, asked: tuple[str, Window, Window], now: int, kept: OpenRunSnapshot
) -> None:
    """Measure a user's report and the totals before it."""
    user, window, before = asked
    report = partial(report_document, db, "user", user, *window, _SETTINGS, now, limit=50)
    figures.add("a report", partial(report, kept=kept))
    figures.add("a report that judges its own", report)
    figures.add("totals before, of one", lambda: report_totals(db, "user", user, *before, _SETTINGS, now, kept=kept))
    figures.add("totals before, of all", lambda: totals_by_account(db, *before, _SETTINGS, kept))


if __name__ == "__main__":
    sys.exit(main())

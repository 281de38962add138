"""A roll-up that is killed between or within two steps."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.store.test_rollup import BEFORE, DAY, documents, roll, row, run, same, sums

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore

pytestmark = pytest.mark.long

CHILD = """
import sys
from pathlib import Path
from gpuwaste.core.clock import SystemClock
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.ledger.rollup import Rollup
from gpuwaste.ledger.run_judging import HANG_LIMITS
store = HubStore.open(Path(sys.argv[1]), SystemClock())
for taken in Rollup(store, HANG_LIMITS, 3).steps(int(sys.argv[2])):
    print(taken, flush=True)
"""


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_kill_in_the_middle_loses_and_doubles_nothing(tmp_path: Path, steps: int) -> None:
    """After kill -9 between or within two steps every hour is there once, and the next pass ends the work."""
    path, rng = tmp_path / "hub.duckdb", random.Random(5)
    jobs = [run(i, i, 30, 2) for i in range(1, 7)]
    store = HubStore.open(path, SystemClock())
    upsert_jobs(store, jobs)
    upsert_hours(store, [row(j, gpu, i, rng) for j in jobs for gpu in range(2) for i in range(30)])
    before, total = documents(store), sums(store)
    store.close()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(BEFORE)], stdout=subprocess.PIPE, env=os.environ
    )
    assert child.stdout is not None
    for _ in range(steps):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait(30)
    child.stdout.close()
    store = HubStore.open(path, SystemClock())
    assert sums(store) == total
    same(before, documents(store))
    roll(store)
    same(before, documents(store))
    assert (sums(store), store.counts()["hours"]) == (total, 0)
    assert RunKey("gw", 1, DAY + HOUR_S) in {e.run_key for e in history_events(store, 0, 99)}
    store.close()

"""The hub's store under load: many threads, another process, a kill."""

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.unit.store.test_hub_store import hour, stored

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore


def test_a_second_hub_on_one_store_is_refused(tmp_path: Path) -> None:
    """While one process has the store, another one's start is refused in one line that names the holder's pid."""
    path = tmp_path / "hub.duckdb"
    store = HubStore.open(path, SystemClock())
    code = "from gpuwaste.core.clock import *; from gpuwaste.store.hub.hub_store import *;"
    code += f"HubStore.open({str(path)!r}, SystemClock())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert "StoreError" in last
    assert str(os.getpid()) in last
    store.close()


WRITER = """
import sys
from pathlib import Path
from gpuwaste.core.clock import SystemClock
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.store.hub.hub_store import HubStore
from tests.unit.store.test_hub_store import hour
store = HubStore.open(Path(sys.argv[1]), SystemClock())
for seq in range(1, 100000):
    upsert_hours(store, [hour(seq, job) for job in range(1, 9)])
    print(seq, flush=True)
"""


def test_what_was_said_to_be_stored_survives_kill_9(tmp_path: Path) -> None:
    """A writer killed at a random moment leaves every batch that it told of, and each batch whole or not at all."""
    path = tmp_path / "hub.duckdb"
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            told = 0
            for _ in range(random.randint(1, 25)):
                told = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            process.wait(30)
        store = HubStore.open(path, SystemClock())
        seqs = {row[2] for row in stored(store)}
        assert len(seqs) == 1
        assert seqs.pop() >= told
        assert len(stored(store)) == 8
        store.close()
        path.unlink()
        path.with_name("hub.duckdb.wal").unlink(missing_ok=True)


def test_writers_and_readers_of_many_threads(tmp_path: Path) -> None:
    """Threads that write the same keys and threads that read at the same time all succeed, and every key is single."""
    store = HubStore.open(tmp_path / "hub.duckdb", SystemClock())
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            for seq in range(8):
                upsert_hours(store, [hour(seq * 10 + number, job) for job in range(1, 20)])
                upsert_jobs(store, [JobRecord("gw", job, 900, start=1000, cpus=seq) for job in range(1, 20)])
                history_events(store, 0, 10)
                store.counts()
        except Exception as error:  # noqa: BLE001 a thread's error is the test's to tell
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [(row[0], row[2]) for row in stored(store)] == [(job, 73) for job in range(1, 20)]
    store.close()

"""A hub that is killed while it reads raw pages again loses nothing and reads no page twice."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.hub.test_page_reader import JOBS, old_store, opened, told

SCRIPT = """
import sys, threading
from pathlib import Path
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.importers.page_details import PageReader
from gpuwaste.store.hub.hub_store import HubStore

path = Path(sys.argv[1])
reader = PageReader(HubStore.open(path, SystemClock()), path, SystemClock())
take = reader._pages.take

def said(kept, page):
    runs = take(kept, page)
    print(kept.number, flush=True)
    return runs

reader._pages.take = said
reader.step(threading.Event())
"""


def read_and_kill(path: Path, pages: int) -> list[int]:
    """Let a process read, kill it with SIGKILL after some pages, and return all that it said it took."""
    words = [sys.executable, "-c", SCRIPT, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = [int(process.stdout.readline()) for _ in range(pages)]
        process.kill()
        return found + [int(line) for line in process.stdout if line.endswith("\n")]


@pytest.mark.long
def test_a_killed_hub_goes_on(tmp_path: Path) -> None:
    """What a process said it took is on disk: the next one takes the others, and every run has its details."""
    path = old_store(tmp_path, page_b=200)
    first = read_and_kill(path, 2)
    second = read_and_kill(path, 2)
    assert not set(first) & set(second)
    store, reader = opened(path)
    assert reader.worker.turn() is None
    assert told(store) == (JOBS, JOBS, JOBS, JOBS, 0)
    store.close()

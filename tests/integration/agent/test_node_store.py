"""The node store with a whole day, through a kill and on a full disk."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.fakes import START_US
from tests.unit.agent.test_node_store import BASE, DAY_US, a_store, at, days_of

from gpuwaste.core.errors import StoreError

WRITER = """
import os, sys
from pathlib import Path
from tests.unit.agent.test_node_store import BASE, at, a_store
store = a_store(Path(sys.argv[1]))
for number in range(10_000):
    store.append([at(BASE, number)])
    os.write(1, f"{number}\\n".encode())
"""


def test_a_kill_loses_at_most_the_tick_in_flight(tmp_path: Path) -> None:
    """Every tick that was acknowledged before kill -9 is there afterwards, as written."""
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, cwd=root) as writer:
        assert writer.stdout is not None
        acknowledged = -1
        while acknowledged < 120:
            acknowledged = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
    found = list(a_store(tmp_path).samples_since(0))
    assert found[: acknowledged + 1] == [at(BASE, number) for number in range(acknowledged + 1)]
    assert len(found) <= acknowledged + 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """Mount a file system of 2 MiB, where that is allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("no right to mount a small file system")
    return place


def test_a_full_disk_costs_the_oldest_day(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """When the disk is full the oldest day goes and the tick is kept; with nothing to drop it is one clear error."""
    try:
        store = a_store(small_disk)
        store.append([BASE])
        store.append([at(BASE, 1, DAY_US)])
        with (small_disk / "filler").open("wb") as filler, pytest.raises(OSError, match="No space"):
            while True:
                os.write(filler.fileno(), b"x" * 4096)
        tick = 0
        with pytest.raises(StoreError, match=r"2026-01-02"):
            for tick in range(20_000):
                store.append([replace(at(BASE, 1, DAY_US), mono_us=tick * 7919, power_mw=tick * 7919 % 500_000)] * 50)
        assert "the oldest day was dropped" in caplog.text
        (small_disk / "filler").unlink()
        store.append([at(BASE, 2, DAY_US)])
        store.close()
        assert days_of(small_disk)[-1] == "2026-01-03.duckdb"
    finally:
        subprocess.run(["umount", str(small_disk)], check=True)


def test_a_whole_day_can_be_read_and_compacted(tmp_path: Path) -> None:
    """A day of 8 GPUs at 10 s fits into the memory that the store may take, reading and writing."""
    store = a_store(tmp_path)
    for begin in range(0, 8640, 720):
        store.append([replace(at(BASE, n), gpu_uuid=f"GPU-{g}") for n in range(begin, begin + 720) for g in range(8)])
    assert sum(1 for _ in store.samples_since(START_US - 1)) == 8640 * 8
    store.append([at(BASE, 8640)])
    assert len(list(store.samples_since(START_US + 8638 * 10_000_000))) == 8 + 1

"""The child that folds: each tick is in its day once, whenever the child is killed and whatever it finds."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.samples import BASE, EMPTY, a_segment, at

from gpuwaste.agent.segment import from_line, segments
from gpuwaste.ledger.gpu_sample import Sample
from gpuwaste.store.database import Database
from gpuwaste.store.duckdb_connection import connect

DAY = "2026-01-01.duckdb"
TICKS = [[at(BASE, n), at(EMPTY, n)] for n in range(40)]


def child(folder: Path, more: str = "today='2026-01-01'") -> "subprocess.Popen[bytes]":
    """Start a child that says when it has loaded everything."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; from pathlib import Path; from gpuwaste.agent.fold import main; "
        f"print('ready', flush=True); sys.exit(main(Path({str(folder)!r}), 1000, {more}))"
    )
    started = subprocess.Popen([sys.executable, "-IBS", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout
    assert started.stdout.readline() == b"ready\n"
    return started


def folded(folder: Path, more: str = "today='2026-01-01'") -> tuple[int, str]:
    """Run a child to its end; return its exit code and what it said."""
    done = child(folder, more)
    _, words = done.communicate()
    return done.returncode, words.decode()


def stored(folder: Path) -> list[list[Sample]]:
    """Return the ticks that a child reads."""
    reader = child(folder, "since_us=0")
    lines, _ = reader.communicate()
    assert reader.returncode == 0
    return [from_line(line) for line in lines.splitlines()]


def rows(folder: Path) -> tuple[int, int]:
    """Return how many ticks and samples the day's file has."""
    with connect(folder / DAY, read_only=True) as day:
        found = day.execute("SELECT (SELECT count(*) FROM tick), (SELECT count(*) FROM sample)").fetchone()
        assert found
        return found[0], found[1]


def test_what_is_folded_twice_is_there_once(tmp_path: Path) -> None:
    """A segment that a killed child had folded and not removed changes nothing; it is removed."""
    path = a_segment(tmp_path, 1, TICKS)
    data = path.read_bytes()
    assert folded(tmp_path) == (0, "")
    assert not path.exists()
    path.write_bytes(data)
    assert folded(tmp_path) == (0, "")
    assert not path.exists()
    assert rows(tmp_path) == (40, 80)
    assert stored(tmp_path) == TICKS


@pytest.mark.long
@pytest.mark.timeout(400)  # a child starts again until all is folded
def test_a_child_may_be_killed_at_any_instant(tmp_path: Path) -> None:
    """Children are killed (SIGKILL) at drawn instants of their work until all is folded: each tick is there once."""
    seed = int(os.environ.get("GPUWASTE_TEST_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"GPUWASTE_TEST_SEED={seed}")  # noqa: T201 by which a failure is seen again
    draw = random.Random(seed)
    trial = tmp_path / "trial"
    trial.mkdir()
    _write(trial, TICKS)
    began = time.monotonic()
    child(trial).communicate()
    length_s = time.monotonic() - began
    folder = tmp_path / "raw"
    folder.mkdir()
    _write(folder, TICKS)
    for _ in range(14):
        worker = child(folder, "today='2026-01-01', pack_today=True")
        try:
            worker.communicate(timeout=draw.uniform(0, length_s))
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.communicate()
    assert stored(folder) == TICKS
    assert rows(folder) == (40, 80)
    assert segments(folder) == []
    assert not list(folder.glob("*.corrupt*"))


def _write(folder: Path, ticks: Sequence[Sequence[Sample]]) -> None:
    for number in range(8):
        a_segment(folder, number + 1, ticks[number * 5 : number * 5 + 5])


def test_a_bad_segment_is_set_aside_and_holds_up_none(tmp_path: Path) -> None:
    """A segment whose records no version of ours wrote is renamed and named; those after it are folded."""
    a_segment(tmp_path, 1, TICKS[:2])
    a_segment(tmp_path, 2, [TICKS[2], [replace(BASE, t_utc_us=5, map_source="rumour")]])  # type: ignore[arg-type]
    a_segment(tmp_path, 3, TICKS[3:])
    code, words = folded(tmp_path)
    assert code == 0
    assert "renamed to 00000002-2026-01-01.samples.corrupt: 'rumour' is not a valid MapSource" in words
    assert stored(tmp_path) == TICKS[:2] + TICKS[3:]


def test_a_day_that_another_process_holds_waits_and_is_read_all_the_same(tmp_path: Path) -> None:
    """While somebody has the day's file open nothing is folded or lost; samples are read from the segments."""
    a_segment(tmp_path, 1, TICKS[:1])
    assert folded(tmp_path) == (0, "")
    path = a_segment(tmp_path, 2, TICKS[1:])
    with connect(tmp_path / DAY):
        code, words = folded(tmp_path)
        assert code == 1
        assert "raw-samples-not-folded: " in words
        assert stored(tmp_path) == TICKS[1:]
    assert path.exists()
    assert stored(tmp_path) == TICKS
    assert not path.exists()


def test_duckdb_draws_no_bar_on_standard_output(tmp_path: Path) -> None:
    """In a child that is given its program as text too, from the first migration on, and in cursors."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; from gpuwaste.store.database import Database;"
        "migrate, sql = Database._migrate, \"SELECT current_setting('enable_progress_bar')\";"
        "Database._migrate = lambda self: (print(self.execute(sql).fetchone()), migrate(self));"
        f"store = Database.open({str(tmp_path / 'x.duckdb')!r}, 'node');"
        "print(store.cursor().execute(sql).fetchone())"
    )
    done = subprocess.run([sys.executable, "-IBS", "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "(False,)\n(False,)\n"


def test_an_orphan_is_waited_for(tmp_path: Path) -> None:
    """Two children at once, as after a kill of the agent: one waits, and both end well with each tick once."""
    _write(tmp_path, TICKS)
    first, second = child(tmp_path), child(tmp_path)
    assert [worker.communicate()[1] for worker in (first, second)] == [b"", b""]
    assert (first.returncode, second.returncode) == (0, 0)
    assert rows(tmp_path) == (40, 80)


def test_a_day_of_version_0_1_goes_on_and_can_go_back(tmp_path: Path) -> None:
    """A day that an agent of 0.1 began is continued, its energy counter too, and its tables stay as 0.1 knows them."""
    old = Database.open(tmp_path / DAY, "node")
    for sql in (
        "INSERT INTO gpu VALUES (0, 'GPU-a', '', 456, 400000)",
        "INSERT INTO label VALUES (0, 'nvml', 'cgroup', 'single', '')",
        "INSERT INTO run VALUES (0, 9, 'gw', 1700000000)",
        "INSERT INTO tick VALUES (1, 1767225600000000, 17)",
        "INSERT INTO energy_jump VALUES ('GPU-a', 1, 1000000000000)",
        "INSERT INTO sample VALUES (1, 0, 0, 0, 12.5, 123, 70000, 0, 0.25, 1)",
    ):
        old.execute(sql)
    old.close()
    before = _tables(tmp_path)
    a_segment(tmp_path, 1, [[at(BASE, 1)]])
    assert folded(tmp_path, "today='2026-01-01', pack_today=True") == (0, "")
    assert stored(tmp_path) == [[BASE], [at(BASE, 1)]]
    assert _tables(tmp_path) == before


def _tables(folder: Path) -> list[tuple[str, ...]]:
    with connect(folder / DAY, read_only=True) as day:
        version = day.execute("SELECT 'version', version::VARCHAR, schema FROM schema_version").fetchall()
        columns = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        return version + day.execute(columns).fetchall()

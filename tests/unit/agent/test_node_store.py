"""The node store: what is written comes back, days are dropped whole, and broken files cost themselves only."""

import itertools
import os
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from tests.unit.agent.fakes import START_US

from gpuwaste.agent.node_store import NodeStore
from gpuwaste.agent.state_lock import StateLock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.run import RunKey
from gpuwaste.core.sample import Confidence, MapSource, Sample

DAY_US = 86_400_000_000
BASE = Sample(
    t_utc_us=START_US,
    mono_us=17,
    gpu_uuid="GPU-a",
    instance="",
    source="nvml",
    util_pct=12.5,
    mem_used_b=123 << 10,
    mem_total_b=456,
    power_mw=70_000,
    power_limit_mw=400_000,
    energy_mj=10**12,
    sm_ratio=0.25,
    procs=1,
    job_id=9,
    run_key=RunKey("gw", 9, 1_700_000_000),
    map_source=MapSource.CGROUP,
    confidence=Confidence.SINGLE,
)
EMPTY = Sample(START_US, 17, "GPU-b", "1/0", "nvml", reason="mig")


def a_store(path: Path, days: int = 14, size_b: int = 1 << 30) -> NodeStore:
    return NodeStore(path, days, size_b)


def at(sample: Sample, number: int, step_us: int = 10_000_000) -> Sample:
    """Return the sample so many ticks later, its energy counter further on."""
    energy = None if sample.energy_mj is None else sample.energy_mj + 777 * number
    move = number * step_us
    return replace(sample, t_utc_us=sample.t_utc_us + move, mono_us=sample.mono_us + move, energy_mj=energy)


def days_of(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "raw").iterdir())


def test_samples_come_back_as_they_were(tmp_path: Path) -> None:
    """Every field, also None, and the energy counter after gaps, a reset and a leap, survives reopening."""
    written = [at(BASE, 0), EMPTY, at(BASE, 1), replace(at(BASE, 2), energy_mj=None), at(BASE, 3)]
    written.append(replace(at(BASE, 4), energy_mj=10**15))
    written.append(replace(at(BASE, 5), energy_mj=5, util_pct=None, reason="gap", job_id=None, run_key=None))
    store = a_store(tmp_path)
    for _, tick in itertools.groupby(written[:3], key=lambda s: s.t_utc_us):
        store.append(list(tick))
    store.close()
    store = a_store(tmp_path)
    for sample in written[3:]:
        store.append([sample])
    assert list(store.samples_since(START_US - 1)) == written
    assert list(store.samples_since(START_US + 10_000_000)) == written[3:]


def test_an_impossible_reading_is_unknown_and_costs_nothing_else(tmp_path: Path) -> None:
    """A count that no column can hold is stored as None; the tick is kept."""
    store = a_store(tmp_path)
    store.append([replace(BASE, power_mw=2**63 - 1, mem_used_b=-5000, procs=-1)])
    assert list(store.samples_since(0)) == [replace(BASE, power_mw=None, mem_used_b=None, procs=None)]


def test_a_utilization_above_zero_is_never_stored_as_zero(tmp_path: Path) -> None:
    """Only a true 0 is idle: 0.0001 percent stays above 0 in the stored hundredths."""
    store = a_store(tmp_path)
    store.append([replace(BASE, util_pct=0.0001, sm_ratio=1e-9)])
    store.append([replace(at(BASE, 1), util_pct=0.0)])
    assert [s.util_pct for s in store.samples_since(0)] == [0.01, 0.0]


def test_holders_of_a_shared_gpu_both_come_back(tmp_path: Path) -> None:
    """Two samples of one GPU at one instant keep their jobs, and the energy counter counts once."""
    other = replace(BASE, job_id=10, run_key=None)
    store = a_store(tmp_path)
    store.append([BASE, other])
    store.append([at(BASE, 1), at(other, 1)])
    assert list(store.samples_since(0)) == [BASE, other, at(BASE, 1), at(other, 1)]


def test_each_day_has_its_file_and_yesterday_is_compacted(tmp_path: Path) -> None:
    """Rows go to the file of their UTC day; a day that is over is written anew and still says the same."""
    store = a_store(tmp_path)
    rows = [at(BASE, n, DAY_US // 4) for n in range(9)]
    for row in rows:
        store.append([row])
    assert days_of(tmp_path)[:2] == ["2026-01-01.duckdb", "2026-01-02.duckdb"]
    assert list(store.samples_since(0)) == rows
    store.close()
    assert days_of(tmp_path) == ["2026-01-01.duckdb", "2026-01-02.duckdb", "2026-01-03.duckdb"]


def test_today_is_compacted_now_and_then(tmp_path: Path) -> None:
    """A day that has grown is written anew while it goes on, and nothing of it changes."""
    store = a_store(tmp_path)
    rows = [replace(at(BASE, n), gpu_uuid=f"GPU-{g}") for n in range(1200) for g in range(10)]
    for number in range(0, len(rows), 2000):
        store.append(rows[number : number + 2000])
    store.append([at(BASE, 1200)])
    assert list(store.samples_since(0)) == [*rows, at(BASE, 1200)]
    assert days_of(tmp_path) == ["2026-01-01.duckdb"]


def test_days_are_dropped_by_age(tmp_path: Path) -> None:
    """With a retention of three days the fourth day costs the first its file."""
    store = a_store(tmp_path, days=3)
    for number in range(6):
        store.append([at(BASE, number, DAY_US)])
    store.close()
    assert [name[:10] for name in days_of(tmp_path)] == ["2026-01-03", "2026-01-04", "2026-01-05", "2026-01-06"]


def test_days_are_dropped_by_size_oldest_first(tmp_path: Path) -> None:
    """Above the size the oldest goes first, and today's file always stays."""
    store = a_store(tmp_path, size_b=1)
    for number in range(3):
        store.append([at(BASE, number, DAY_US)])
    store.close()
    assert days_of(tmp_path) == ["2026-01-03.duckdb"]


def test_a_corrupt_day_is_set_aside_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that is no database is renamed and named in the log; sampling goes on in a new one."""
    store = a_store(tmp_path)
    (tmp_path / "raw" / "2026-01-01.duckdb").write_bytes(b"\0garbage" * 5000)
    store.append([BASE])
    assert list(store.samples_since(0)) == [BASE]
    assert "2026-01-01.duckdb.corrupt" in days_of(tmp_path)
    assert "set aside" in caplog.text


def test_a_newer_day_is_set_aside(tmp_path: Path) -> None:
    """A file of a later version's schema is kept under another name."""
    store = a_store(tmp_path)
    store.append([BASE])
    store.close()
    raw = duckdb.connect(str(tmp_path / "raw" / "2026-01-01.duckdb"))
    raw.execute("INSERT INTO schema_version VALUES ('node', 99)")
    raw.close()
    store = a_store(tmp_path)
    store.append([at(BASE, 1)])
    assert list(store.samples_since(0)) == [at(BASE, 1)]
    assert "2026-01-01.duckdb.corrupt" in days_of(tmp_path)


def test_two_agents_cannot_share_a_state_directory(tmp_path: Path) -> None:
    """The second one is told which process holds it; after the first has gone it gets in."""
    first = StateLock(tmp_path)
    with pytest.raises(StoreError, match=f"held by another process pid {os.getpid()}"):
        StateLock(tmp_path)
    first.close()
    StateLock(tmp_path).close()

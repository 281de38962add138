"""HistoryState: snapshots, bounds, and events that do not fit."""

import gc
import json
import threading
from pathlib import Path

import numpy as np
import pytest

from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.vectors import replay_vectors, vector_of
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.history import history_snapshot
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import GpuUse
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.histories import made_table, requests, tell

PLACE = {feature.name: place for place, feature in enumerate(FEATURES)}
ASKED = JobRequest("alice", 1_700_000_000, name="train1", cpus=4, time_limit_s=600, gpus=2)


def value(state: HistoryState, name: str, request: JobRequest = ASKED) -> float:
    return float(vector_of(state, request)[PLACE[name]])


def test_a_snapshot_resumes(tmp_path: Path) -> None:
    """Saved in the middle of a log and loaded again, a state gives the vectors it would have given."""
    table = made_table(900, seed=8)
    begin = int(np.searchsorted(table.submit, table.submit[600]))
    state = HistoryState()
    tell(table, state, until=(int(table.submit[begin]), 5))
    state.save(tmp_path / "history")
    loaded = HistoryState.load(tmp_path / "history")
    assert {run: str(held) for run, held in loaded.open.items()} == {run: str(h) for run, h in state.open.items()}
    assert (loaded.as_of, list(loaded.unjudged), len(loaded.keys)) == (
        state.as_of, list(state.unjudged), len(state.keys)
    )  # fmt: skip
    whole = replay_vectors(table).vectors
    runs = list(zip(table.job_id.tolist(), table.submit.tolist(), strict=True))
    rest = [row for row in range(900) if row >= begin or runs[row] in loaded.open]
    resumed = replay_vectors(table.take(np.array(rest)), loaded).vectors
    assert np.array_equal(resumed[rest.index(begin) :], whole[begin:], equal_nan=True)
    assert [path.name for path in tmp_path.iterdir()] == ["history"], "a temporary file was left"


def test_a_snapshot_has_the_rule_by_which_it_was_counted(tmp_path: Path) -> None:
    """Loaded and copied a state keeps its rule of under-use; a snapshot without one is none."""
    path, rule = tmp_path / "history", UnderUse(20.0, 60.0, 0.5)
    HistoryState(under_use=rule).save(path)
    assert HistoryState.load(path).copy().under_use == rule
    header, _, rows = path.read_bytes().partition(b"\n")
    told = {name: value for name, value in json.loads(header).items() if name != "under_use"}
    path.write_bytes(json.dumps(told).encode() + b"\n" + rows)
    with pytest.raises(ParseError, match="not a history snapshot"):
        HistoryState.load(path)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda _: b"", "not a history snapshot"),
        (lambda _: b"\x00\xff" * 9000, "not a history snapshot"),
        (lambda _: b"[" * 4000, "not a history snapshot"),
        (lambda data: data[: len(data) // 2], "truncated"),
        (lambda data: data + b"more", "truncated"),
        (lambda data: data[:-40] + b"\x01" + data[-39:], "corrupt"),
        (lambda data: data.replace(history_snapshot._LAYOUT.encode(), b"0" * 64), "another version"),
        (lambda data: data.replace(b'"rows": ', b'"rows": -'), "not a history snapshot"),
        (lambda data: data.replace(b'"below_pct": 5.0', b'"below_pct": "5"'), "under_use|below_pct"),
        (lambda data: data.replace(b"gpuwaste history 1", b"gpuwaste history 2"), "not a history snapshot"),
    ],
)
def test_a_damaged_snapshot_is_refused(tmp_path: Path, damage: object, says: str) -> None:
    """Empty, binary, truncated, altered, and of another version: one clear line with the path each."""
    assert callable(damage)
    state = replay_vectors(made_table(100)).state
    state.save(tmp_path / "history")
    data = (tmp_path / "history").read_bytes()
    (tmp_path / "history").write_bytes(damage(data))
    with pytest.raises(ParseError, match=says) as caught:
        HistoryState.load(tmp_path / "history")
    assert str(tmp_path / "history") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_snapshot_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    """A missing file and a missing folder are errors of the store."""
    with pytest.raises(StoreError, match="cannot be read"):
        HistoryState.load(tmp_path / "none")
    with pytest.raises(StoreError, match="cannot be written"):
        HistoryState().save(tmp_path / "none" / "history")


def test_runs_that_are_not_in_the_system() -> None:
    """Starts, ends and ledger of unknown runs, and repeated ones, are refused and change nothing."""
    state = HistoryState()
    use = GpuUse(0.5, 1, 1.0, 1_700_000_050)
    assert not state.started(1, ASKED.submit, ASKED.submit)
    assert not state.ended(1, ASKED.submit, ASKED.submit + 5, 5.0, Outcome.FAILED)
    assert not state.gpu_use(1, ASKED.submit, use)
    state.submitted(ASKED, 1)
    state.submitted(ASKED, 1)
    assert value(state, "user_queued") == 1.0
    assert state.started(1, ASKED.submit, ASKED.submit + 1)
    assert state.started(1, ASKED.submit, ASKED.submit + 1)
    assert (value(state, "user_queued"), value(state, "user_running")) == (0.0, 1.0)
    assert not state.gpu_use(1, ASKED.submit, use), "not ended yet"
    assert state.ended(1, ASKED.submit, ASKED.submit + 5, 5.0, Outcome.FAILED)
    assert not state.ended(1, ASKED.submit, ASKED.submit + 5, 5.0, Outcome.FAILED)
    assert (value(state, "user_failed_8"), value(state, "user_running")) == (1.0, 0.0)
    assert state.gpu_use(1, ASKED.submit, use)
    assert not state.gpu_use(1, ASKED.submit, use)
    assert value(state, "user_gpu_active_share") == 0.5
    assert not state.open


def test_never_seen_is_not_zero() -> None:
    """A cluster without history knows no rate, no time and no amount: NaN; what can be counted is 0."""
    vector = vector_of(HistoryState(), ASKED)
    counted = {"failed_8", "completed_8", "late_8", "fail_streak", "cancelled", "ended", "running", "queued"}
    counted |= {"burst", "unanswered", "open", "open_age"}
    for feature, number in zip(FEATURES, vector.tolist(), strict=True):
        key, _, name = feature.name.partition("_")
        if key in {"user", "account", "shape", "partition", "cluster"}:
            assert number == 0.0 if name in counted else np.isnan(number), feature.name


def test_the_oldest_keys_go() -> None:
    """Over its bound a state forgets the keys whose last event is oldest, keeps those of open runs, and goes on."""
    state = HistoryState(max_keys=400)
    first = JobRequest("first", 1_000)
    state.submitted(first, 0)
    for number in range(1, 500):
        asked = JobRequest(f"u{number}", 1_000 + number)
        state.submitted(asked, number)
        state.ended(number, asked.submit, asked.submit + 1, 1.0, Outcome.COMPLETED)
        assert len(state.keys) <= 405
    assert value(state, "user_queued", JobRequest("first", 9_000)) == 1.0, "the key of a waiting run went"
    assert np.isnan(value(state, "user_run_1", JobRequest("u1", 9_000)))
    assert value(state, "user_run_1", JobRequest("u499", 9_000)) == 1.0 or value(
        state, "user_ended", JobRequest("u499", 9_000)
    )
    assert state.ended(0, 1_000, 2_000, 1_000.0, Outcome.FAILED)
    assert value(state, "user_failed_8", JobRequest("first", 9_000)) == 1.0


def test_readers_beside_a_writer() -> None:
    """Vectors asked in another thread while events arrive are whole: an ended run is in all parts of a row or none."""
    state = HistoryState()
    stop = threading.Event()
    torn: list[float] = []

    def read() -> None:
        while not stop.is_set():
            vector = vector_of(state, ASKED)
            ended, failed = vector[PLACE["user_ended"]], vector[PLACE["user_fail_all"]]
            if ended and failed != 1.0:
                torn.append(float(ended))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(3000):
        asked = JobRequest("alice", 1_700_000_000 + number)
        state.submitted(asked, number)
        state.ended(number, asked.submit, asked.submit + 1, 1.0, Outcome.FAILED)
    stop.set()
    reader.join()
    assert not torn


def test_memory_of_a_large_site() -> None:
    """Rows and index of 500,000 keys (100,000 users with 5 keys each) take less than 100 MB."""
    state = HistoryState()
    hashes = np.random.default_rng(1).integers(1, 2**63, 500_000, dtype=np.uint64)
    rows = np.zeros(len(hashes), dtype=state.keys.rows.dtype)
    rows["key"] = hashes
    state.keys.put_all(rows)
    gc.collect()
    assert len(state.keys) == 500_000
    assert state.keys.nbytes <= 100_000_000
    assert state.keys.find(int(hashes[-1])) == int(state.keys.find_all(hashes[-1:])[0]) != 0


def test_requests_of_a_table() -> None:
    """The vector of a request equals that of its row, and hashing a request gives the row's keys."""
    table = made_table(30)
    assert len(requests(table)) == 30
    assert np.array_equal(
        vector_of(HistoryState(), requests(table)[0]), replay_vectors(table).vectors[0], equal_nan=True
    )

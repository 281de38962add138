"""replay against the state told run by run, and both against the definitions in plain Python."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.examples import examples, few
from tests.public_data import public
from tests.unit.jobs.history.contents import content

from gpuwaste.advice.predict.features import FEATURES, predecessors
from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.testing.histories import made_table, read_swf, tell
from gpuwaste.testing.plain_history import PlainHistory


def assert_equal(one: NDArray[np.float32], other: NDArray[np.float32]) -> None:
    """Equal bit for bit, apart from the bits of a NaN; says which feature of which row is not."""
    same = (one.view(np.uint32) == other.view(np.uint32)) | (np.isnan(one) & np.isnan(other))
    rows, columns = np.nonzero(~same)
    assert not len(rows), [
        (int(r), FEATURES[c].name, one[r, c], other[r, c]) for r, c in zip(rows[:5], columns[:5], strict=True)
    ]


def assert_as_defined(defined: NDArray[np.float32], ours: NDArray[np.float32]) -> None:
    """Equal bit for bit, but for the means over unended jobs, which plain Python adds in another order."""
    loose = [place for place, feature in enumerate(FEATURES) if feature in predecessors.FEATURES]
    assert np.allclose(defined[:, loose], ours[:, loose], rtol=1e-5, atol=1e-6, equal_nan=True)
    strict = defined.copy()
    strict[:, loose] = ours[:, loose]
    assert_equal(strict, ours)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln.swf.xz", "LLNL-Atlas-2006-2.1-cln.swf.xz"])
def test_online_and_offline_are_equal_on_a_real_log(name: str) -> None:
    """Every vector of a real log is the same bits online and offline, and so is the state at the end."""
    table = read_swf(public(f"swf/{name}"), limit=1000 if few() else 4000)
    state = HistoryState()
    online = tell(table, state)
    offline = replay_vectors(table)
    assert_equal(online, offline.vectors)
    assert content(state) == content(offline.state)
    assert np.isfinite(offline.vectors).mean() > 0.5


@pytest.mark.parametrize("seed", [1, 2])
def test_online_and_offline_are_equal_with_everything_at_once(seed: int) -> None:
    """GPUs, waits, arrays, equal seconds, zero-length runs, runs that never start or end: still the same bits."""
    table = made_table(1500, seed=seed, users=30)
    state = HistoryState()
    online = tell(table, state)
    offline = replay_vectors(table)
    assert_equal(online, offline.vectors)
    assert content(state) == content(offline.state)


def test_heavy_keys_go_the_long_way() -> None:
    """With more keys than are finished one by one, array steps and single steps give the same bits."""
    table = made_table(2000, users=400, seed=5)
    flat = table.user.codes.copy()
    flat[:] = np.arange(len(table)) % 400
    table.user.codes[:] = flat
    assert_equal(tell(table, HistoryState()), replay_vectors(table).vectors)


def test_the_definitions() -> None:
    """The vectors are what the definitions in plain Python say."""
    table = made_table(1500, seed=11)
    assert_as_defined(tell(table, PlainHistory()), replay_vectors(table).vectors)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    count=st.integers(1, 40),
    users=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    gap=st.sampled_from([0.5, 3.0, 40.0, 900.0]),
    burst=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_the_definitions_on_small_logs(count: int, users: int, seed: int, gap: float, burst: float) -> None:
    """Small random logs: plain Python, the state run by run, and replay agree on every feature of every row."""
    table = made_table(count, users=users, seed=seed, gap_s=gap, burst=burst)
    plain = tell(table, PlainHistory())
    online = tell(table, HistoryState())
    assert_as_defined(plain, online)
    assert_equal(online, replay_vectors(table).vectors)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_replay_goes_on_from_a_state(share: float) -> None:
    """A state told up to an instant, then replay of the runs that follow or are open: the vectors of one replay."""
    table = made_table(1200, seed=21)
    whole = replay_vectors(table)
    row = int(share * len(table))
    while table.submit[row] == table.submit[row - 1]:
        row += 1
    state = HistoryState()
    tell(table, state, until=(int(table.submit[row]), 5))
    before = content(state)
    held = [n for n in range(len(table)) if n >= row or (int(table.job_id[n]), int(table.submit[n])) in state.open]
    rest = table.take(np.array(held, dtype=np.intp))
    resumed = replay_vectors(rest, state)
    first = held.index(row)
    assert_equal(whole.vectors[row:], resumed.vectors[first:])
    assert content(state) == before, "the state that was passed has changed"
    assert content(resumed.state) == content(whole.state)


def test_a_repeated_run_counts_once() -> None:
    """Rows of the same run twice add nothing to the history, online and offline alike."""
    table = made_table(300, seed=4)
    twice = table.take(np.sort(np.concatenate((np.arange(300), np.arange(0, 300, 7)))))
    once = replay_vectors(table)
    again = replay_vectors(twice)
    assert content(once.state) == content(again.state)
    assert_equal(tell(twice, HistoryState()), again.vectors)


@pytest.mark.parametrize("count", [0, 1])
def test_next_to_nothing(count: int) -> None:
    """A table without rows, and one of a single row, are no special case."""
    result = replay_vectors(made_table(5).take(np.arange(count)))
    assert result.vectors.shape == (count, len(FEATURES))
    assert len(result.state.keys) == (6 if count else 0)


def test_absurd_amounts_are_values() -> None:
    """Instants before 1970 or after 2106, infinite and negative amounts: no crash, nothing infinite comes out."""
    table = made_table(200, seed=9)
    table.run_s[::3], table.limit_s[::5], table.cpus[::7], table.max_rss_b[::11] = -5.0, 1e18, 1e12, 1e30
    table.mem_b[::13], table.limit_s[1::5] = 1e18, 0.0
    odd = table.take(np.arange(200))
    odd.submit[:3], odd.end[5], odd.start[5], odd.end[6] = -(10**6), 10**12, 10**11, 5
    online = tell(odd, HistoryState())
    assert_equal(online, replay_vectors(odd).vectors)
    assert not np.isinf(online).any()

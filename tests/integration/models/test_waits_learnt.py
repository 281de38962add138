"""Waits learnt in windows of time and corrected: they look at nothing later, and hold their interval."""

import numpy as np
import pytest

from gpuwaste.models.wait_replay import WaitRows
from gpuwaste.models.wait_trees import FIRST, LEARNT, WINDOWS, corrected, figures, learnt


def rows_of(count: int, seed: int = 2) -> WaitRows:
    """Return waits that one feature explains up to a factor; what was simulated is ten times too short."""
    rng = np.random.default_rng(seed)
    known = rng.uniform(4, 9, count)
    wait = np.exp(known + rng.normal(0, 0.3, count)).astype(np.int64)
    submit = np.sort(rng.integers(0, 600 * count, count))
    features = np.column_stack([known, rng.random(count)]).astype(np.float32)
    simulated = np.exp(known)[:, None] * np.array([0.08, 0.1, 0.12])
    baselines = {"median": np.full((count, 3), float(np.median(wait)))}
    return WaitRows(submit, submit + wait, features, simulated, baselines)


def test_no_window_knows_what_comes_after_it() -> None:
    """Other waits of the jobs that had not started change nothing that was said before they did."""
    rows = rows_of(1000)
    cut = round(1000 * (FIRST + (1 - FIRST) * 5 / WINDOWS))
    now = rows.submit[cut]
    start = np.where(rows.start >= now, rows.start + 50_000, rows.start)
    one, other = learnt(rows, threads=1), learnt(rows._replace(start=start), threads=1)
    assert np.isnan(one[: round(1000 * FIRST)]).all()
    end = round(1000 * (FIRST + (1 - FIRST) * 6 / WINDOWS))
    np.testing.assert_array_equal(one[:end], other[:end])
    assert not np.array_equal(one[end:], other[end:])
    shifted, elsewhere = corrected(rows, rows.simulated), corrected(rows._replace(start=start), rows.simulated)
    np.testing.assert_array_equal(shifted[: cut + 1], elsewhere[: cut + 1])
    assert not np.array_equal(shifted[cut + 1 :], elsewhere[cut + 1 :])


def test_it_learns_what_there_is_to_learn() -> None:
    """What one feature explains is learnt: the interval holds four of five, and the loss is far below a median's."""
    rows = rows_of(3000)
    found, judged = figures(rows, learnt(rows, threads=1))
    learnt_figures = next(each for each in found if each.method == LEARNT)
    assert judged == 2400
    assert 0.76 <= learnt_figures.coverage <= 0.84
    assert learnt_figures.beside_best < -0.6
    assert learnt_figures.coverage + learnt_figures.below + learnt_figures.above == pytest.approx(1)

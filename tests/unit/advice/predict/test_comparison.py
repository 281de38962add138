"""Two models on the same jobs: every draw equals the plain definition, and what cannot be told is not told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score
from tests.examples import examples

from gpuwaste.advice.predict.model_comparison import PairedComparison, compare

REPEATS = 60


def plain(y: list[int], p: list[float], q: list[float], users: list[int], seed: int) -> list[tuple[float, float]]:
    """Return the differences of both metrics by draw: the rows of each drawn user written out as often as drawn."""
    rng = np.random.default_rng(seed)
    present = sorted(set(users))
    found = []
    for counts in rng.multinomial(len(present), [1 / len(present)] * len(present), size=REPEATS):
        times = dict(zip(present, counts.tolist(), strict=True))
        rows = [row for row, user in enumerate(users) for _ in range(times[user])]
        truth, first, second = ([column[row] for row in rows] for column in (y, p, q))
        brier = sum((b - t) ** 2 - (a - t) ** 2 for t, a, b in zip(truth, first, second, strict=True)) / len(rows)
        if len(set(truth)) == 2:
            gain = average_precision_score(truth, second) - average_precision_score(truth, first)
            found.append((float(gain), brier))
        else:
            found.append((float("nan"), brier))
    return found


def columns(rng: np.random.Generator, jobs: int, users: int) -> tuple[np.ndarray, ...]:
    """Return labels, a poor and a good column of probabilities, and users of some jobs."""
    y = (rng.random(jobs) < 0.4).astype(np.float64)
    poor, good = rng.random(jobs), np.clip(0.3 + 0.4 * y + 0.3 * rng.standard_normal(jobs), 0.01, 0.99)
    return y, poor, good, rng.integers(0, users, jobs)


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10_000), jobs=st.integers(2, 40), users=st.integers(1, 6))
def test_each_draw_equals_the_plain_definition(seed: int, jobs: int, users: int) -> None:
    """Users drawn whole with replacement, both models judged on each draw, draws of one class left out."""
    rng = np.random.default_rng(seed)
    y, p, q, owner = columns(rng, jobs, users)
    p, q = np.round(p, 1), np.round(q, 1)  # equal probabilities too
    found = compare(y, p, q, owner, repeats=REPEATS, seed=seed)
    wanted = plain(y.astype(int).tolist(), p.tolist(), q.tolist(), owner.tolist(), seed)
    gains = [gain for gain, _ in wanted if np.isfinite(gain)]
    np.testing.assert_allclose(found.average_precision.draws, gains, atol=1e-9)
    np.testing.assert_allclose(found.brier.draws, [brier for _, brier in wanted], atol=1e-9)
    if gains:
        for margin in (0.0, 0.05):
            above, below = found.average_precision.share_above(margin), found.average_precision.share_below(margin)
            for share, ways in ((above, gains), (below, [-gain for gain in gains])):
                # A gain that is the margin, but for rounding, is on either side of it.
                least, most = (sum(one > margin + edge for one in ways) / len(gains) for edge in (1e-9, -1e-9))
                assert least - 0.02 <= share <= most + 0.02


def ready(found: PairedComparison) -> tuple[float, float]:
    return found.average_precision.low, found.average_precision.high


def test_the_better_one_is_told_and_equals_are_not() -> None:
    """A good model beside a random one is better in every draw; a model beside itself in none."""
    y, poor, good, users = columns(np.random.default_rng(7), 600, 40)
    found = compare(y, poor, good, users)
    assert (found.jobs, found.users, found.positives) == (600, 40, int(y.sum()))
    assert found.average_precision.share_above(0.05) == 1.0
    assert found.average_precision.low > 0
    same = compare(y, good, good, users)
    assert (same.average_precision.difference, *ready(same)) == (0.0, 0.0, 0.0)
    assert same.average_precision.share_above(0.0) == same.average_precision.share_below(0.0) == 0.0


def test_one_user_who_sends_most_jobs_does_not_decide() -> None:
    """A second model that is right for one user alone, who sends nine jobs in ten, is not surely better."""
    rng = np.random.default_rng(3)
    y, poor, good, users = columns(rng, 1000, 20)
    flood = rng.random(1000) < 0.9
    users = np.where(flood, 99, users)
    mixed = np.where(flood, good, np.where(y > 0, 0.02, 0.98))
    found = compare(y, poor, mixed, users)
    assert found.average_precision.difference > 0.1
    assert found.average_precision.share_above(0.005) < 0.9


def test_without_jobs_or_with_one_class_nothing_is_told() -> None:
    """No draw has an average precision: no share of them is above or below anything."""
    empty = compare(np.empty(0), np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
    alike = compare(np.zeros(9), np.full(9, 0.1), np.full(9, 0.2), np.arange(9))
    for found in (empty, alike):
        assert not len(found.average_precision.draws)
        assert found.average_precision.share_above(0.0) == 0.0
        assert np.isnan(found.average_precision.low)
    assert alike.brier.difference == pytest.approx(0.03)

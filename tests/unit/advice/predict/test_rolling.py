"""Rolling corrections: they start as the bundle says, follow the jobs that ended, and never look ahead."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.advice.predict.bundles import FAILURE, FEATURES, WALLTIME, manifest_of, write

from gpuwaste.advice.predict.bundle import load_bundle
from gpuwaste.advice.predict.conformal_shifts import MIN_ENDS, WINDOW, Shifts
from gpuwaste.advice.predict.corrections import BundleCorrections
from gpuwaste.advice.predict.drift import coverage, ece
from gpuwaste.advice.predict.manifest import PlattScaling, TargetModel
from gpuwaste.advice.predict.recalibration import Recalibration
from gpuwaste.advice.predict.rolling import Rolling, busy_users, roll, static
from gpuwaste.advice.predict.targets import labels, request_cap
from gpuwaste.core.errors import ModelError, ParseError, StoreError
from gpuwaste.jobs.history.job_table import JobTable, table_of
from gpuwaste.slurm.accounting.job_record import JobRecord


def jobs(n: int, seed: int = 1, limit_s: int = 3600) -> tuple[JobTable, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Return n runs, a minute apart, that fail with the probabilities returned; runs are log-normal up to the limit."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    runs = np.minimum(np.exp(rng.normal(6, 1, n)), limit_s).astype(int)
    records = [
        JobRecord(
            cluster="gw",
            job_id=i,
            submit=60 * i,
            user="u",
            time_limit_s=limit_s,
            start=60 * i,
            end=60 * i + max(1, int(runs[i])),
            elapsed_s=max(1, int(runs[i])),
            state="TIMEOUT" if runs[i] == limit_s else "FAILED" if rng.random() < p[i] else "COMPLETED",
        )
        for i in range(n)
    ]
    return table_of(records), p


def test_it_starts_with_the_bundles_own_numbers() -> None:
    """Before any job has ended, probability and quantiles are those of calibration and shifts."""
    rolling = Rolling(manifest_of())
    assert rolling.probability("failure", 0.3) == pytest.approx(1 / (1 + math.exp(-(1.2 * math.log(0.3 / 0.7) - 0.1))))
    assert rolling.quantiles("walltime", [1.0, 2.0]) == pytest.approx([math.exp(1), math.exp(2.5)])
    assert rolling.seen("failure") == rolling.seen("walltime") == 0


def test_quantiles_never_fall_and_never_exceed_the_request() -> None:
    """A crossed pair is lifted to the lower one's value before its shift, and both end at the cap."""
    rolling = Rolling(manifest_of())
    assert rolling.quantiles("walltime", [5.0, 1.0]) == pytest.approx([math.exp(5), math.exp(5.5)])
    assert rolling.quantiles("walltime", [5.0, 9.0], cap=100.0) == [100.0, 100.0]
    assert rolling.quantiles("walltime", [1e9, 1e9])[0] < math.inf


@given(
    st.lists(st.tuples(st.floats(-20, 20), st.floats(-20, 20), st.floats(-5, 20)), max_size=300),
    st.tuples(st.floats(-20, 20), st.floats(-20, 20)),
    st.floats(1, 1e6),
)
def test_whatever_ended_quantiles_are_ordered_and_capped(
    ends: list[tuple[float, float, float]], raw: tuple[float, float], cap: float
) -> None:
    """For any history of ends the quantiles are ascending, finite and at most the request."""
    shifts = Shifts((0.5, 0.9), ())
    for low, high, value in ends:
        shifts.observe((low, high), value)
    low, high = shifts.apply(raw, cap)
    assert 0 <= low <= high <= cap


def test_probabilities_that_are_off_become_calibrated() -> None:
    """Raw numbers at twice the odds' logarithm and shifted: the rolling error is a small part of the static one."""
    table, p = jobs(6000)
    y = labels("failure", table)
    known = np.isfinite(y)
    raw = (1 / (1 + np.exp(-(2 * np.log(p / (1 - p)) + 1.5)))).astype(np.float32)[:, None]
    model = replace(FAILURE, calibration=PlattScaling())
    rolled, as_is = roll(table, model, raw).values, static(model, table, raw)
    late = known & (np.arange(len(table)) > 2000)
    assert ece(as_is[late], y[late]) > 0.1
    assert ece(rolled[late], y[late]) < 0.03


def test_quantiles_that_are_off_hold_what_they_promise() -> None:
    """Raw log quantiles far too low: under correction 10 % and 5 % of runs exceed them, within two points."""
    table, _ = jobs(8000)
    model = TargetModel("walltime", "w.onnx", (0.9, 0.95))
    raw = np.full((len(table), 2), 3.0, np.float32)
    y = labels("walltime", table)
    late = np.arange(len(table)) > 1500
    assert coverage(static(model, table, raw)[late], y[late])[1] < 0.1
    below = coverage(roll(table, model, raw).values[late], y[late])
    assert below == pytest.approx([0.9, 0.95], abs=0.02)


def test_runs_that_outlive_their_limit_do_not_inflate_the_correction() -> None:
    """Where a third of the jobs run far beyond their limit, 10, 5 and 1 % of all jobs exceed what is predicted."""
    rng, n, quantiles = np.random.default_rng(8), 12_000, (0.9, 0.95, 0.99)
    raw = rng.normal(7, 1, n)
    runs = np.exp(raw + rng.normal(0, 0.5, n))
    outlives = rng.random(n) < 0.35
    limit = np.where(outlives, np.exp(raw), 20 * runs).astype(int) + 1
    runs = np.where(outlives, limit * rng.uniform(1.5, 30, n), runs).astype(int) + 1
    table = table_of(
        [
            JobRecord(
                "gw", i, 60 * i, user="u", time_limit_s=int(limit[i]), start=60 * i, end=60 * i + int(runs[i]),
                elapsed_s=int(runs[i]), state="COMPLETED",
            )
            for i in range(n)
        ]
    )  # fmt: skip
    model = TargetModel("walltime", "w.onnx", quantiles)
    values = roll(table, model, np.repeat(raw.astype(np.float32)[:, None], 3, axis=1)).values
    late = np.arange(n) > 4000
    taken = np.minimum(runs, limit)[late]
    under = [float((column < taken).mean()) for column in values[late].T]
    assert under == pytest.approx([0.1, 0.05, 0.01], abs=0.01)


def test_a_run_below_what_was_said_is_no_miss() -> None:
    """A quantile lifted to a lower one's shifted value misses as often as promised, counted by what users are told."""
    rng, shifts = np.random.default_rng(4), Shifts((0.5, 0.6), ())
    short = []
    for i in range(8 * WINDOW):
        raw = (0.0, 6.0) if rng.random() < 0.5 else (0.0, 0.0)  # the second quantile is far off for half of the jobs
        value = rng.normal()
        if i > 4 * WINDOW:
            short.append([value > math.log(said) for said in shifts.apply(raw)])
        shifts.observe(raw, value)
    assert np.mean(short, axis=0) == pytest.approx([0.5, 0.4], abs=0.03)


def test_shifts_follow_a_change_of_the_jobs() -> None:
    """After runs become a hundred times longer, coverage is back within two windows."""
    rng, shifts = np.random.default_rng(3), Shifts((0.9,), ())
    inside = []
    for i in range(6 * WINDOW):
        value = rng.normal(0 if i < 3 * WINDOW else 4.6)
        inside.append(math.log(shifts.apply([0.0])[0]) >= value)
        shifts.observe([0.0], value)
    assert np.mean(inside[WINDOW : 3 * WINDOW]) == pytest.approx(0.9, abs=0.02)
    assert np.mean(inside[5 * WINDOW :]) == pytest.approx(0.9, abs=0.03)


def test_users_with_jobs_in_the_system_have_their_own_window() -> None:
    """Where busy users' runs differ from the others', each kind is covered as promised, by its own shifts."""
    rng, shifts = np.random.default_rng(6), Shifts((0.9,), ())
    inside: dict[bool, list[bool]] = {True: [], False: []}
    for i in range(8 * WINDOW):
        busy = bool(rng.random() < 0.4)
        value = rng.normal(3.0 if busy else 0.0, 0.5)
        if i > 2 * WINDOW:
            inside[busy].append(math.log(shifts.apply([0.0], busy=busy)[0]) >= value)
        shifts.observe([0.0], value, busy=busy)
    assert [np.mean(inside[kind]) for kind in (True, False)] == pytest.approx([0.9, 0.9], abs=0.02)


def test_busy_is_what_the_vector_says() -> None:
    """A user with a waiting or a running job is busy; one of whom nothing is known is not."""
    rows = np.array([[0, 1], [2, 0], [0, 0], [np.nan, np.nan]], np.float32)
    assert busy_users(rows, ("user_queued", "user_running")).tolist() == [True, True, False, False]
    assert busy_users(rows, ("a", "b")).tolist() == [False] * 4


def test_a_score_never_knows_what_ended_later() -> None:
    """Labels and ends of jobs that had not ended at a submission can be changed: its number stays, bit for bit."""
    table, p = jobs(3000)
    raw = p.astype(np.float32)[:, None]
    at = int(table.submit[1500])
    open_then = table.end > at
    outcome, run_s = table.outcome.copy(), table.run_s.copy()
    outcome[open_then], run_s[open_then] = 1, 5.0
    other = replace(table, outcome=outcome, run_s=run_s)
    for model, scores in ((FAILURE, raw), (WALLTIME, np.repeat(raw, 2, axis=1))):
        first, second = roll(table, model, scores).values, roll(other, model, scores).values
        assert np.array_equal(first[:1501], second[:1501], equal_nan=True)
        assert not np.array_equal(first, second, equal_nan=True)


def test_online_calls_give_what_the_table_gives() -> None:
    """Scores and ends told one by one, in time order, end in the same numbers as the whole table at once."""
    table, p = jobs(1500)
    raw = np.repeat(p.astype(np.float32)[:, None], 2, axis=1)
    y, caps = labels("walltime", table), request_cap("walltime", table)
    online, values = Rolling(manifest_of()), np.empty((len(table), 2))
    events = [(int(e), 0, i) for i, e in enumerate(table.end)] + [(int(s), 1, i) for i, s in enumerate(table.submit)]
    for _, kind, i in sorted(events):
        if kind:
            values[i] = online.quantiles("walltime", raw[i].tolist(), float(caps[i]))
        else:
            online.observe("walltime", raw[i].tolist(), float(y[i]))
    whole = roll(table, WALLTIME, raw)
    assert np.array_equal(values, whole.values)
    assert online.seen("walltime") == whole.rolling.seen("walltime") == WINDOW


def test_an_end_online_counts_with_its_limit(tmp_path: Path) -> None:
    """A run that completes long after its limit moves the correction no further than a run of just the limit."""
    beyond, exact = (Rolling(manifest_of()) for _ in range(2))
    bundle, scores = load_bundle(write(tmp_path), FEATURES), {"walltime": np.array([5.0, 6.0], np.float32)}
    for rolling, run in ((beyond, 50_000), (exact, 3600)):
        corrections = BundleCorrections(bundle, rolling)
        for i in range(MIN_ENDS + 5):
            job = JobRecord("gw", i, i, start=i, time_limit_s=3600, end=i + run, elapsed_s=run, state="COMPLETED")
            corrections.ended(scores, job)
    assert beyond.seen("walltime") == MIN_ENDS + 5
    assert beyond.quantiles("walltime", [5.0, 6.0]) == exact.quantiles("walltime", [5.0, 6.0])


def test_rows_that_are_not_scored_are_not_learnt_from() -> None:
    """Training rows stay out: they are NaN in the answer, and no end of theirs is observed."""
    table, p = jobs(500)
    scored = np.arange(500) >= 400
    result = roll(table, FAILURE, p.astype(np.float32)[:, None], scored=scored)
    assert np.isnan(result.values[:400]).all()
    assert np.isfinite(result.values[400:]).all()
    assert result.rolling.seen("failure") <= 100


def test_saved_and_loaded_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    """After a reload at any point, further ends and answers are the same, bit for bit."""
    rng, path = np.random.default_rng(5), tmp_path / "rolling.npz"
    kept = loaded = Rolling(manifest_of(), "hash")
    for i in range(WINDOW + 350):
        raw = rng.normal(size=2).tolist()
        for each in (kept,) if kept is loaded else (kept, loaded):
            each.observe("walltime", raw, math.exp(raw[0] + 1), busy=i % 3 == 0)
            each.observe("failure", [0.3], float(i % 3 == 0))
        if i in {MIN_ENDS + 7, WINDOW + 30}:
            kept.save(path)
            loaded = Rolling.load(path, manifest_of(), "hash")
    assert loaded.quantiles("walltime", [1.0, 2.0]) == kept.quantiles("walltime", [1.0, 2.0])
    assert loaded.probability("failure", 0.4) == kept.probability("failure", 0.4) != 0.4


def test_corrupt_and_foreign_corrections_are_said(tmp_path: Path) -> None:
    """Missing, cut, garbage and another bundle's: one error each, never a wrong number."""
    path = tmp_path / "rolling.npz"
    rolling = Rolling(manifest_of(), "hash")
    rolling.observe("failure", [0.3], 1.0)
    rolling.save(path)
    with pytest.raises(ParseError, match="another bundle"):
        Rolling.load(path, manifest_of(), "other")
    data = path.read_bytes()
    for cut in (b"", b"x", data[:40], data[: len(data) // 2], data[:-10], b"\x93NUMPY" + data):
        path.write_bytes(cut)
        with pytest.raises(ParseError):
            Rolling.load(path, manifest_of(), "hash")
    with pytest.raises(StoreError):
        Rolling.load(tmp_path / "absent", manifest_of(), "hash")
    with pytest.raises(StoreError):
        rolling.save(tmp_path / "absent" / "x.npz")


def test_no_label_is_no_end_and_no_target_is_an_error() -> None:
    """NaN is passed over; a target without a model is one line."""
    rolling = Rolling(manifest_of())
    rolling.observe("failure", [0.5], math.nan)
    assert rolling.seen("failure") == 0
    with pytest.raises(ModelError, match="no model of this target"):
        rolling.probability("memory", 0.5)
    with pytest.raises(ModelError, match="no model of this target"):
        rolling.observe("memory", [0.5], 1.0)


def test_one_class_and_reversed_scores_stay_sane() -> None:
    """Only failures, only successes, and scores that say the opposite: no probability is turned round."""
    for ends in ((1.0, 1.0), (0.0, 0.0), (1.0, 0.0)):
        recalibration = Recalibration(PlattScaling(), every=50)
        for i in range(2000):
            recalibration.observe((0.1, 0.9)[i % 2], ends[i % 2])
        low, high = recalibration.apply(0.1), recalibration.apply(0.9)
        assert 0 < low <= high < 1
        assert high == pytest.approx(np.mean(ends), abs=0.05)


def test_a_low_quantile_of_equal_values_stays() -> None:
    """Where a p10 is missed less often than nine times of ten, and never can be, its shift is the smallest gap."""
    shifts = Shifts([0.1], [0.0])
    for k in range(3000):
        shifts.observe([0.0], 5.0 if k % 10 == 0 else 0.0)
    assert shifts.current() == [0.0]

"""Drift: a moved column is named, chance is not, and the figures agree with their definitions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.advice.predict.bundles import FEATURES, manifest_of, write
from tests.unit.advice.predict.test_rolling import jobs

from gpuwaste.advice.predict.bundle import load_bundle
from gpuwaste.advice.predict.drift import bins, coverage, ece, feature_drift, references
from gpuwaste.advice.renewal.model_status import drifted, status_document
from gpuwaste.advice.renewal.models_text import status_text
from gpuwaste.core.errors import NoDataError
from gpuwaste.show.layout import Look

RNG = np.random.default_rng(8)


def columns(n: int, shift: float = 0.0, unknown: float = 0.2) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    """Return n rows: normal with a shift, whole numbers with unknowns, and never known."""
    rows = np.column_stack([RNG.normal(shift, 1, n), RNG.integers(0, 3, n), np.full(n, np.nan)]).astype(np.float32)
    rows[RNG.random(n) < unknown, 1] = np.nan
    return rows


def test_the_same_population_has_not_moved_and_another_has() -> None:
    """Of three columns the shifted one alone is named, by both thresholds; more unknown values are drift too."""
    edges, shares = bins(columns(20_000))
    manifest = replace(manifest_of(), drift_bins=edges, drift_shares=shares)
    assert [sum(s) for s in shares] == pytest.approx([1, 1, 1])
    assert {d.level for d in feature_drift(manifest, columns(3000))} == {""}
    levels = [{d.feature: d.level for d in feature_drift(manifest, columns(3000, s))} for s in (0.4, 2.0)]
    assert levels == [{"a": "some", "b": "", "c": ""}, {"a": "much", "b": "", "c": ""}]
    assert feature_drift(manifest, columns(3000, 0, 0.7))[0].feature == "b"


def test_the_index_is_what_its_formula_says() -> None:
    """Two bins and unknowns, by hand."""
    manifest = replace(manifest_of(), features=("a",), drift_bins=((5.0,),), drift_shares=((0.5, 0.5, 0.0),))
    rows = np.array([[1.0]] * 100 + [[9.0]] * 300, np.float32)
    (drift,) = feature_drift(manifest, rows)
    assert drift.psi == pytest.approx((0.25 - 0.5) * np.log(0.25 / 0.5) + (0.75 - 0.5) * np.log(0.75 / 0.5))
    assert drift.chance == pytest.approx(1 / 400)


def test_few_jobs_are_no_drift() -> None:
    """Below the smallest number of jobs nothing is called drift, and no bins or no rows give nothing."""
    edges, shares = bins(columns(20_000))
    manifest = replace(manifest_of(), drift_bins=edges, drift_shares=shares)
    assert {d.level for d in feature_drift(manifest, columns(50, 3.0))} == {""}
    assert feature_drift(manifest, columns(0)) == []
    assert feature_drift(manifest_of(), columns(10)) == []


def test_references_are_medians_of_what_is_known() -> None:
    """A column that is never known has none."""
    rows = np.array([[1, np.nan, np.nan], [3, 7, np.nan], [2, np.nan, np.nan]], np.float32)
    assert references(rows) == (2.0, 7.0, None)


def test_calibration_error_and_coverage_are_those_of_the_books() -> None:
    """0.9 said of jobs of which half fail is off by 0.4; a job exactly at its quantile is covered."""
    assert ece(np.full(10, 0.9), np.array([0.0, 1.0] * 5)) == pytest.approx(0.4)
    assert np.isnan(ece(np.empty(0), np.empty(0)))
    assert coverage(np.array([[1.0, 3.0], [1.0, 3.0]]), np.array([1.0, 2.0])) == [0.5, 1.0]


def test_status_names_what_moved_and_leaves_the_training_window_out(tmp_path: Path) -> None:
    """Only jobs after the window count; a drifted feature is named; static and rolling figures stand beside."""
    bundle = load_bundle(write(tmp_path), FEATURES)
    table, p = jobs(3000)
    vectors = np.column_stack([np.log(p / (1 - p)), np.full(3000, 5.0), p]).astype(np.float32)
    edges, shares = bins(vectors)
    manifest = replace(bundle.manifest, drift_bins=edges, drift_shares=shares, window=(0, int(table.submit[999])))
    fresh = replace(bundle, manifest=manifest)
    vectors[1000:, 2] += 5
    document = status_document(fresh, table, vectors)
    assert document.jobs == 2000
    assert document.first_utc == table.submit[1000]
    assert "c" in drifted(document)
    assert "a" not in drifted(document)
    by_name: dict[str, Any] = {row.target: row for row in document.targets}
    assert by_name["failure"].ece_rolled < 0.05
    assert [c.rolled for c in by_name["walltime"].coverage] == pytest.approx([0.5, 0.9], abs=0.05)
    lines = status_text(document, Look()).splitlines()
    assert any(line.split()[:1] == ["failure"] and "calibration error" in line for line in lines)
    assert any(line.split()[:1] == ["walltime"] and "share below 0.5: " in line for line in lines)
    later = replace(manifest, window=(0, 10**12))
    with pytest.raises(NoDataError, match="no job was submitted after"):
        status_document(replace(bundle, manifest=later), table, vectors)

"""A replay of a model's walltimes: of jobs after what it learnt from, by what was known at each submission."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.unit.advice.predict.bundles import WALLTIME, manifest_of, quantile_graph

from gpuwaste.advice.predict.bundle import Bundle, load_bundle, our_features
from gpuwaste.jobs.history.job_table import ABSENT, JobTable
from gpuwaste.models.bundle_export import write_files
from gpuwaste.models.event_replay import UNKNOWN, expected_walltimes
from gpuwaste.testing.histories import made_table


def _bundle(folder: Path, until: int) -> Bundle:
    features = our_features()
    manifest = replace(manifest_of("m", features=features), targets=(WALLTIME,), window=(0, until))
    write_files(folder, manifest, {"walltime.onnx": quantile_graph(features)}, features)
    return load_bundle(folder)


def test_only_jobs_after_the_window_are_asked_about(tmp_path: Path) -> None:
    """Jobs that the model may have learnt from, and those from the end on, are unknown; the others have a walltime."""
    table = made_table(400, users=5)
    until, end = int(table.submit[200]), int(table.submit[350])
    found = expected_walltimes(table, _bundle(tmp_path / "m", until), end)
    asked = (table.submit > until) & (table.submit < end)
    assert (found[~asked] == UNKNOWN).all()
    assert (found[asked] >= 1).all()
    assert not expected_walltimes(table, _bundle(tmp_path / "n", end), end).max() > UNKNOWN


def test_the_future_changes_nothing(tmp_path: Path) -> None:
    """What jobs ran that end after an instant changes no walltime of a job submitted until then."""
    table = made_table(400, users=5)
    bundle, at = _bundle(tmp_path / "m", int(table.submit[100])), int(table.submit[300])
    late = (table.end >= at) & (table.end != ABSENT)
    other: JobTable = replace(table, run_s=np.where(late, table.run_s + 5000.0, table.run_s))
    assert late.any()
    assert (expected_walltimes(table, bundle, at) == expected_walltimes(other, bundle, at)).all()

"""Export: ONNX says what XGBoost says, to the last row of the gate, and a wrong conversion never becomes a bundle."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import xgboost
from onnx import helper
from tests.integration.models.boosters import FEATURES, grow, probability, quantile, rows
from tests.unit.advice.predict.bundles import manifest_of

from gpuwaste.advice.predict.bundle import FeatureSet, load_bundle
from gpuwaste.advice.predict.manifest import Manifest, PlattScaling, TargetModel
from gpuwaste.advice.predict.onnx_session import Session
from gpuwaste.core.errors import ModelError
from gpuwaste.models.bundle_export import graph_of, write_bundle
from gpuwaste.models.parity import ROWS, check, edge_rows, gate_of, settled, thresholds

OURS = FeatureSet(1, "a" * 64, tuple(f"x{i}" for i in range(FEATURES)))
FAILURE = TargetModel("failure", "", calibration=PlattScaling(1.1, 0.2), thresholds={"warn": 0.3, "reject": 0.6})
WALLTIME = TargetModel("walltime", "", quantiles=(0.5, 0.9))


@pytest.fixture(scope="module")
def trees() -> dict[str, Sequence[xgboost.Booster]]:
    return {"failure": (probability(),), "walltime": (quantile(0.5), quantile(0.9, rounds=7))}


def manifest() -> Manifest:
    return replace(manifest_of("m", features=OURS), targets=(FAILURE, WALLTIME))


def test_a_bundle_says_what_xgboost_says(trees: dict[str, Sequence[xgboost.Booster]], tmp_path: Path) -> None:
    """On 10,000 rows and the edges there is no flip, and the loaded bundle equals the boosters on real rows."""
    x = rows(500)
    written = write_bundle(
        tmp_path / "m", manifest=manifest(), boosters=trees, vectors=x, extra={"card.md": b"#"}, expected=OURS
    )
    for parity in written.parity.values():
        assert parity.rows - parity.edges == ROWS
        assert (parity.real, parity.flips) == (500, 0)
        assert parity.edges > 5000
        assert parity.max_difference < 1e-5
    bundle = load_bundle(tmp_path / "m", OURS)
    assert bundle.manifest == written.manifest
    assert set(bundle.manifest.files) == {"failure.onnx", "walltime.onnx", "card.md"}
    assert bundle.raw("failure", x)[:, 0] == pytest.approx(trees["failure"][0].inplace_predict(x), abs=1e-6)
    for i, booster in enumerate(trees["walltime"]):
        assert bundle.raw("walltime", x)[:, i] == pytest.approx(booster.inplace_predict(x), rel=1e-6)


def test_equal_boosters_give_equal_bytes(trees: dict[str, Sequence[xgboost.Booster]], tmp_path: Path) -> None:
    """Two exports of the same boosters are the same files, manifest included."""
    for name in ("one", "two"):
        write_bundle(tmp_path / name, manifest=manifest(), boosters=trees, vectors=rows(300), expected=OURS)
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def bad_zero(model: onnx.ModelProto) -> None:
    """Take zero for missing, as a converter may: each zero goes where an unknown value goes."""
    graph = model.graph
    graph.initializer.append(helper.make_tensor("zero", onnx.TensorProto.FLOAT, [1, 1], [0.0]))
    graph.initializer.append(helper.make_tensor("nan", onnx.TensorProto.FLOAT, [1, 1], [float("nan")]))
    graph.node[0].input[0] = "seen"
    graph.node.insert(0, helper.make_node("Where", ["is_zero", "nan", "features"], ["seen"]))
    graph.node.insert(0, helper.make_node("Equal", ["features", "zero"], ["is_zero"]))


def bad_missing(model: onnx.ModelProto) -> None:
    """Send unknown values to the other side."""
    tracks = attribute(model, "nodes_missing_value_tracks_true")
    modes = attribute(model, "nodes_modes").strings
    tracks.ints[:] = [0 if mode == b"LEAF" else 1 - value for value, mode in zip(tracks.ints, modes, strict=True)]


def bad_side(model: onnx.ModelProto) -> None:
    """Let a value on its threshold take the lower side: right for scikit-learn, wrong for XGBoost."""
    modes = attribute(model, "nodes_modes")
    modes.strings[:] = [b"BRANCH_LEQ" if mode == b"BRANCH_LT" else mode for mode in modes.strings]


def bad_ulp(model: onnx.ModelProto) -> None:
    """Move every threshold by one float32."""
    values = attribute(model, "nodes_values")
    values.floats[:] = np.nextafter(np.array(values.floats, np.float32), np.float32(np.inf)).tolist()


def bad_base(model: onnx.ModelProto) -> None:
    """Leave the base score out."""
    attribute(model, "base_values").floats[:] = [0.0] * len(attribute(model, "base_values").floats)


def attribute(model: onnx.ModelProto, name: str) -> onnx.AttributeProto:
    found: onnx.AttributeProto = next(a for node in model.graph.node for a in node.attribute if a.name == name)
    return found


@pytest.mark.parametrize("spoil", [bad_zero, bad_missing, bad_side, bad_ulp, bad_base])
@pytest.mark.parametrize("model", [FAILURE, WALLTIME], ids=["failure", "walltime"])
def test_a_planted_bad_conversion_is_caught(
    trees: dict[str, Sequence[xgboost.Booster]], model: TargetModel, spoil: object
) -> None:
    """Zero as missing, unknowns astray, the equal side, one ulp, a lost base: the gate names a row each time."""
    boosters = trees[model.target]
    good = graph_of(model, boosters, FEATURES, OURS.hash)
    gate = gate_of(boosters, rows(300))
    model = replace(model, thresholds=settled(model, gate))
    assert check(model, Session(good, "good"), gate).flips == 0
    wrong = onnx.load_from_string(good)
    assert callable(spoil)
    spoil(wrong)
    with pytest.raises(ModelError, match=r"not exported: .* row \d+: XGBoost says"):
        check(model, Session(wrong.SerializeToString(), "wrong"), gate)


def test_a_failed_export_leaves_nothing_behind(
    trees: dict[str, Sequence[xgboost.Booster]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the gate refuses a target, there is no directory, no temporary one, and a directory in place stays."""

    def spoilt(*words: object) -> bytes:
        wrong = onnx.load_from_string(graph_of(*words))  # type: ignore[arg-type]
        bad_zero(wrong)
        return bytes(wrong.SerializeToString())

    monkeypatch.setattr("gpuwaste.models.bundle_export.graph_of", spoilt)
    with pytest.raises(ModelError, match="not exported"):
        write_bundle(tmp_path / "m", manifest=manifest(), boosters=trees, vectors=rows(300), expected=OURS)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    write_bundle(tmp_path / "m", manifest=manifest(), boosters=trees, vectors=rows(300), expected=OURS)
    with pytest.raises(ModelError, match="exists"):
        write_bundle(tmp_path / "m", manifest=manifest(), boosters=trees, vectors=rows(300), expected=OURS)
    load_bundle(tmp_path / "m", OURS)


def test_edge_rows_stand_on_every_side_of_the_thresholds(trees: dict[str, Sequence[xgboost.Booster]]) -> None:
    """Each feature that the trees split has rows exactly on a threshold, one float32 below and one above."""
    splits = thresholds(trees["failure"])
    edges = edge_rows(trees["failure"], rows(300), np.random.default_rng(1))
    assert np.isnan(edges).all(axis=1).any()
    for column, values in splits.items():
        on = np.isin(edges[:, column], values).sum()
        below = np.isin(edges[:, column], np.nextafter(values, np.float32(-np.inf))).sum()
        above = np.isin(edges[:, column], np.nextafter(values, np.float32(np.inf))).sum()
        assert min(on, below, above) > 100


def test_thresholds_settle_between_two_rows(trees: dict[str, Sequence[xgboost.Booster]]) -> None:
    """A threshold that is a row's own probability moves off it, by little, so that the last bit decides nothing."""
    x = rows(2000)
    gate = gate_of(trees["failure"], x)
    model = replace(FAILURE, calibration=PlattScaling())
    exact = float(trees["failure"][0].inplace_predict(x)[7])
    moved = settled(replace(model, thresholds={"warn": exact}), gate)["warn"]
    assert moved != exact
    assert moved == pytest.approx(exact, abs=0.002)
    assert np.abs(gate.trees[:, 0] - moved).min() > 1e-6


def test_trees_that_cannot_be_converted_exactly_are_refused() -> None:
    """A linear booster, another objective, a categorical column, too few or other features: one line each."""
    x, y = rows(200), np.arange(200, dtype=np.float32) % 2
    linear = xgboost.train({"booster": "gblinear", "nthread": 1}, xgboost.DMatrix(x, y), 2)
    regression = grow(x, y, {"objective": "reg:squarederror"}, 2)
    poisson = grow(x, y, {"objective": "count:poisson"}, 2)
    typed = xgboost.DMatrix(x[:, [5]], y, feature_types=["c"], enable_categorical=True)
    categorical = xgboost.train({"objective": "binary:logistic", "tree_method": "hist", "nthread": 1}, typed, 2)
    good = probability(300, 2)
    cases = [(linear, 6), (regression, 6), (poisson, 6), (categorical, 1), (good, 7)]
    for booster, width in cases:
        with pytest.raises(ModelError, match="failure: "):
            graph_of(FAILURE, (booster,), width, OURS.hash)
    with pytest.raises(ModelError, match="2 boosters for 1 outputs"):
        graph_of(FAILURE, (good, good), 6, OURS.hash)
    with pytest.raises(ModelError, match="walltime: "):
        graph_of(WALLTIME, (good, good), 6, OURS.hash)
    with pytest.raises(ModelError, match="walltime: "):
        graph_of(WALLTIME, (poisson, poisson), 6, OURS.hash)


def test_a_first_tree_without_a_split_is_exact() -> None:
    """Labels that no column tells give trees of one leaf; base score and all are still those of XGBoost."""
    x, y = rows(400), (np.arange(400) % 10 == 0).astype(np.float32)
    booster = grow(x, y, {"objective": "binary:logistic", "min_child_weight": 1e6}, 3)
    gate = gate_of((booster,), x)
    parity = check(FAILURE, Session(graph_of(FAILURE, (booster,), 6, OURS.hash), "leaf"), gate)
    assert parity.flips == 0

"""Bundles: a sound one answers, and every way to be broken is one line that names the file, before ONNX sees it."""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.advice.predict.bundles import (
    FAILURE,
    FEATURES,
    graphs,
    manifest_of,
    probability_graph,
    quantile_graph,
    write,
)

from gpuwaste.advice.predict.bundle import BASELINE, FeatureSet, load_bundle
from gpuwaste.advice.predict.onnx_session import Session
from gpuwaste.core.bundle_files import NAME, sha256_hex
from gpuwaste.core.errors import ModelError
from gpuwaste.core.underuse import UNDER_USE, UnderUse
from gpuwaste.models.bundle_export import write_files


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write(tmp_path, more={"card.md": b"# card\n"})


def change(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads((path / NAME).read_text())
    edit(data)
    (path / NAME).write_text(json.dumps(data))


def refused(path: Path, features: FeatureSet = FEATURES) -> str:
    with pytest.raises(ModelError) as caught:
        load_bundle(path, features)
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line
    return line


def test_a_sound_bundle_answers_for_one_row_and_for_many(bundle: Path) -> None:
    """Raw numbers are those of the graphs, by row or all at once, and the hash is the manifest's."""
    loaded = load_bundle(bundle, FEATURES)
    rows = np.array([[0, 1, 2], [1, 2, np.nan], [np.nan, np.nan, 3]], np.float32)
    whole = loaded.raw("failure", rows)
    assert whole.shape == (3, 1)
    assert whole[:, 0] == pytest.approx([0.5, 0.7310586, 0.5])
    assert np.array_equal(np.concatenate([loaded.raw("failure", rows[i : i + 1]) for i in range(3)]), whole)
    assert loaded.raw("walltime", rows).tolist() == [[1, 2], [2, 3], [0, 1]]
    assert loaded.hash == sha256_hex((bundle / NAME).read_bytes())
    assert loaded.raw("walltime", rows[:0]).shape == (0, 2)


def test_an_answer_is_the_callers_own(bundle: Path) -> None:
    """The next call does not change what an earlier one returned."""
    loaded = load_bundle(bundle, FEATURES)
    first = loaded.raw("failure", np.zeros((1, 3), np.float32))
    loaded.raw("failure", np.ones((1, 3), np.float32))
    assert first.tolist() == [[0.5]]


def test_threads_do_not_mix_their_rows(bundle: Path) -> None:
    """Four threads that ask at once each get the answer to their own row."""
    session = load_bundle(bundle, FEATURES).sessions["walltime"]
    wrong: list[int] = []

    def ask(number: int) -> None:
        row = np.full((1, 3), number, np.float32)
        wrong.extend(1 for _ in range(2000) if session.run(row)[0, 0] != number)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_unknown_targets_and_shapes_are_one_line(bundle: Path) -> None:
    """A target without a model says why there is none; a vector of another length is refused."""
    loaded = load_bundle(bundle, FEATURES)
    with pytest.raises(ModelError, match=r"no model of memory \(no label\)"):
        loaded.raw("memory", np.zeros((1, 3), np.float32))
    with pytest.raises(ModelError, match="vectors of another version"):
        loaded.raw("failure", np.zeros((1, 4), np.float32))


@pytest.mark.parametrize("name", ["failure.onnx", NAME, "card.md"])
def test_truncated_missing_and_swapped_files_are_refused(bundle: Path, name: str) -> None:
    """Each file of the bundle is missed, and its every cut or exchange seen, by its name."""
    path = bundle / name
    data = path.read_bytes()
    for size in (0, 1, len(data) // 2, len(data) - 3):
        path.write_bytes(data[:size])
        assert name in refused(bundle)
    path.write_bytes((bundle / "timeout.onnx").read_bytes())
    assert name in refused(bundle)
    path.unlink()
    assert name in refused(bundle)


def test_nothing_unchecked_reaches_onnx_runtime(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one wrong byte in the last file no session is opened at all."""
    opened: list[str] = []
    monkeypatch.setattr("gpuwaste.advice.predict.bundle.Session", lambda _, where: opened.append(where))
    data = bytearray((bundle / "walltime.onnx").read_bytes())
    data[-1] ^= 1
    (bundle / "walltime.onnx").write_bytes(bytes(data))
    assert "not the one in manifest.json" in refused(bundle)
    assert not opened


def test_graphs_of_two_targets_swapped_with_their_sums_are_refused(tmp_path: Path) -> None:
    """Even with a manifest to match, a graph says itself which target it is of."""
    whole = graphs()
    whole["failure.onnx"], whole["timeout.onnx"] = whole["timeout.onnx"], whole["failure.onnx"]
    with pytest.raises(ModelError, match="a graph of timeout, not of failure"):
        write_files(tmp_path / "swapped", manifest_of(), whole, FEATURES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("garbage", [b"", b"\x00" * 100, b"not a graph", os.urandom(4096)])
def test_what_is_no_graph_is_refused(tmp_path: Path, garbage: bytes) -> None:
    """A file whose sum is right and whose content is nothing gives one line from the session."""
    with pytest.raises(ModelError, match=r"failure\.onnx"):
        write_files(tmp_path / "x", manifest_of(), {**graphs(), "failure.onnx": garbage}, FEATURES)


def test_shapes_that_do_not_fit_the_manifest_are_refused(tmp_path: Path) -> None:
    """A graph of other features or another number of outputs is refused, also where it would run."""
    wider = FeatureSet(7, "f" * 64, ("a", "b", "c", "d"))
    for graph in (probability_graph("failure", features=wider), quantile_graph()):
        with pytest.raises(ModelError, match="says 3 and 1"):
            write_files(tmp_path / "x", manifest_of(), {**graphs(), "failure.onnx": graph}, FEATURES)


def test_other_features_are_refused(bundle: Path) -> None:
    """Another version, another hash and another order of names are each said, with what to do."""
    assert "feature version 7, this gpuwaste computes version 8" in refused(bundle, replace(FEATURES, version=8))
    assert "other features of the same version" in refused(bundle, replace(FEATURES, hash="e" * 64))
    assert "train again" in refused(bundle, replace(FEATURES, names=("b", "a", "c")))


@pytest.mark.long
@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m.update(schema=2),
        lambda m: m.update(targets=[]),
        lambda m: m.update(targets=m["targets"] * 2),
        lambda m: m["targets"][0].update(target="luck"),
        lambda m: m["targets"][0].update(target=["failure"]),
        lambda m: m["targets"][0].update(file="other.onnx"),
        lambda m: m["targets"][0].update(file=None),
        lambda m: m["targets"][0].update(quantiles=[0.5]),
        lambda m: m["targets"][0].update(thresholds={"warn": 7}),
        lambda m: m["targets"][0].update(thresholds={"warn": "x"}),
        lambda m: m["targets"][0]["calibration"].update(slope=-1),
        lambda m: m["targets"][2].update(quantiles=[0.9, 0.5]),
        lambda m: m["targets"][2].update(shifts=[1.0]),
        lambda m: m.update(references=[]),
        lambda m: m.update(references=["x", None, None]),
        lambda m: m.update(drift_bins=[[1.0]]),
        lambda m: m.update(drift_bins=[[1.0]] * 3, drift_shares=[[0.5, 0.5]] * 3),
        lambda m: m.update(drift_bins=[["1"]] * 3, drift_shares=[[0.5, 0.5, 0.0]] * 3),
        lambda m: m.update(drift_bins=[[1.0]] * 3),
        lambda m: m.update(files=["failure.onnx"]),
        lambda m: m.update(files={"../x": "0" * 64}),
        lambda m: m["files"].update({"absent.onnx": "0" * 64}),
        lambda m: m["files"].update({"failure.onnx": 5}),
        lambda m: m["files"].pop("failure.onnx"),
        lambda m: m.pop("features"),
        lambda m: m.update(surprise=1),
        lambda m: m.update(under_use={"below_pct": "5"}),
        lambda m: m.update(under_use={"below_pct": float("nan")}),
    ],
)
def test_a_manifest_that_does_not_hold_together_is_refused(
    bundle: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    """Each broken word of the manifest is one line that names it."""
    change(bundle, edit)
    refused(bundle)


def test_a_manifest_has_the_rule_of_its_labels(bundle: Path) -> None:
    """It is read as it was written; the default one where it is not named."""
    change(bundle, lambda m: m.update(under_use={"below_pct": 20, "min_s": 60, "min_coverage": 0.5}))
    assert load_bundle(bundle, FEATURES).manifest.under_use == UnderUse(20.0, 60.0, 0.5)
    change(bundle, lambda m: m.pop("under_use"))
    assert load_bundle(bundle, FEATURES).manifest.under_use == UNDER_USE


def test_another_rule_than_the_sites_is_named_where_it_matters(bundle: Path, tmp_path: Path) -> None:
    """A bundle that has a model of GPUs names both rules; one without it, or of the same rule, has no note."""
    site = UnderUse(below_pct=20.0)
    assert load_bundle(bundle, FEATURES).rule_note(site) == ""
    manifest = replace(manifest_of("gpus"), targets=(replace(FAILURE, target="gpu_underused"),))
    write_files(tmp_path / "gpus", manifest, {"failure.onnx": probability_graph("gpu_underused")}, FEATURES)
    gpus = load_bundle(tmp_path / "gpus", FEATURES)
    assert gpus.rule_note(UNDER_USE) == ""
    note = gpus.rule_note(site)
    assert "gpu_underused of model gpus" in note
    assert UNDER_USE.text in note
    assert site.text in note


def test_manifests_of_bytes_and_depth_are_refused(bundle: Path) -> None:
    """Binary, another encoding, a list, endless nesting: one line each."""
    for text in (b"\xff\xfe\x00", b"[]", b"", b"[" * 100_000, b"null", "{}".encode("utf-16")):
        (bundle / NAME).write_bytes(text)
        refused(bundle)


def test_links_pipes_and_directories_in_place_of_files_are_refused(bundle: Path, tmp_path: Path) -> None:
    """A link out of the directory is not followed, even to the right bytes; a pipe does not hang us."""
    path = bundle / "failure.onnx"
    elsewhere = tmp_path / "elsewhere.onnx"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert "failure.onnx" in refused(bundle)
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in refused(bundle)
    path.unlink()
    path.mkdir()
    assert "failure.onnx" in refused(bundle)


def test_what_everybody_may_write_is_refused(bundle: Path) -> None:
    """A bundle, or a file of it, that others may write is not trusted."""
    for path in (bundle / "card.md", bundle):
        mode = path.stat().st_mode
        path.chmod(mode | 0o002)
        assert "chmod o-w" in refused(bundle)
        path.chmod(mode)
    load_bundle(bundle, FEATURES)


def test_a_huge_file_is_not_read(bundle: Path) -> None:
    """A file over the limit is refused by its size: a sparse one of 300 MB costs nothing."""
    with (bundle / "failure.onnx").open("r+b") as file:
        file.truncate(300 * 1024**2)
    assert "more than a bundle may have" in refused(bundle)


def test_no_directory_no_bundle(tmp_path: Path) -> None:
    """A path that is absent, a file, or impossible is one line."""
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "absent", tmp_path / "file", tmp_path / "a\0b"):
        refused(path)


def test_a_graph_that_answers_nonsense_is_refused(tmp_path: Path) -> None:
    """The trial run sees a probability beyond 0..1."""
    with pytest.raises(ModelError, match="for a row of unknowns"):
        targets = (replace(FAILURE, file="w.onnx"),)
        graph = _shifted()
        write_files(tmp_path / "x", replace(manifest_of(), targets=targets), {"w.onnx": graph}, FEATURES)


def test_another_interface_is_refused() -> None:
    """A graph whose input has another name is refused with what was expected."""
    data = probability_graph("failure").replace(b"features", b"featurez")
    with pytest.raises(ModelError, match="expected features float"):
        Session(data, "x.onnx")


def test_the_shipped_baseline_loads() -> None:
    """The bundle of day one is made for this version's features: else `make baseline`."""
    bundle = load_bundle(BASELINE)
    assert bundle.manifest.origin == "baseline"
    assert {"failure", "timeout", "walltime"} <= set(bundle.targets)


def _shifted() -> bytes:
    """Return a graph of failure that gives 0.5 + 1 for unknowns."""
    import onnx  # noqa: PLC0415 of this case alone
    from onnx import helper, numpy_helper  # noqa: PLC0415

    model = onnx.load_from_string(probability_graph("failure"))
    model.graph.node[-1].output[0] = "p"
    model.graph.node.append(helper.make_node("Add", ["p", "one"], ["raw"]))
    model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 1), np.float32), "one"))
    return bytes(model.SerializeToString())

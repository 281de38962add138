"""A bundle that somebody made to harm: what it brings along, and where its graphs point, is never opened."""

import ast
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tests.unit.advice.predict.bundles import FEATURES, graphs, manifest_of, write

from gpuwaste.advice.predict.bundle import Registry, load_bundle
from gpuwaste.advice.predict.onnx_session import Session
from gpuwaste.core.bundle_files import NAME
from gpuwaste.core.errors import ModelError

ROOT = Path(__file__).parents[4]
UNSAFE = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "cloudpickle", "yaml"}
LOADS = {"np.load", "numpy.load"}


def test_what_is_not_listed_is_never_opened(tmp_path: Path) -> None:
    """A pipe, a link and a pickle beside the listed files: the bundle answers as ever, and a copy has none of them."""
    directory = write(tmp_path / "bundle")
    before = load_bundle(directory, FEATURES).hash
    os.mkfifo(directory / "pipe")  # whoever opens it to read waits for ever
    (directory / "link").symlink_to("/etc/shadow")
    (directory / "model.pkl").write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    assert load_bundle(directory, FEATURES).hash == before
    name = Registry(tmp_path / "models", FEATURES).add(directory)
    assert {path.name for path in (tmp_path / "models" / name).iterdir()} == {NAME, *graphs()}


@pytest.mark.parametrize("place", ["weights.bin", "../weights.bin", "/etc/hostname", "absolute"])
def test_a_graph_cannot_name_a_file_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """ONNX lets a graph keep its numbers in another file: such a graph is refused, wherever the file lies."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.bin").write_bytes(np.zeros(1, np.float32).tobytes())
    model = onnx.load_from_string(graphs()["failure.onnx"])
    tensor = next(t for t in model.graph.initializer if numpy_helper.to_array(t).dtype == np.float32)
    onnx.external_data_helper.set_external_data(
        tensor, str(tmp_path / "weights.bin") if place == "absolute" else place, length=4
    )
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    with pytest.raises(ModelError):
        Session(model.SerializeToString(), "bundle/failure.onnx")


@pytest.mark.long
def test_nothing_of_ours_reads_pickles() -> None:
    """No module of the product imports what runs code while it reads, and each load of NumPy says so."""
    for path in (path for root in ("src", "agent", "models") for path in (ROOT / root).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                named = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not UNSAFE & {name.partition(".")[0] for name in named}, path
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Attribute) and node.func.attr == "load" and ast.unparse(node.func) in LOADS:
                said = {key.arg: ast.unparse(key.value) for key in node.keywords}
                assert said.get("allow_pickle") == "False", path
            if isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec"}, path


def test_a_manifest_with_a_file_of_elsewhere_is_refused(tmp_path: Path) -> None:
    """Listed names are names, not ways."""
    directory = write(tmp_path / "bundle")
    assert manifest_of().name == "one"
    text = (directory / NAME).read_text(encoding="utf-8")
    for name in ("../failure.onnx", "/etc/passwd", "a/b", ".."):
        (directory / NAME).write_text(text.replace('"failure.onnx":', f'"{name}":'), encoding="utf-8")
        with pytest.raises(ModelError, match="not a file in its directory"):
            load_bundle(directory, FEATURES)

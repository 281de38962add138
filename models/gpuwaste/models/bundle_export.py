"""Writing a bundle: graphs through the parity gate, then all files and the manifest, complete or not at all.

A graph for each target, "features" float32 [n, F] -> "raw" float32 [n, 1 or q]. onnxmltools converts the trees; the
graph around them is ours, because its classifier has two outputs and a label, and treats the base score of a first tree
without splits as a margin. Equal boosters give equal bytes.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import xgboost
from onnx import TensorProto, helper
from onnxmltools.convert.xgboost.operator_converters.XGBoost import XGBConverter

from gpuwaste.advice.predict.bundle import HASH_KEY, TARGET_KEY, FeatureSet, load_bundle
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.advice.predict.onnx_session import INPUT, OUTPUT, Session
from gpuwaste.advice.renewal.card_types import Parity
from gpuwaste.core.bundle_files import NAME, sha256_hex
from gpuwaste.core.errors import ModelError
from gpuwaste.core.files import TEMPORARY, sync_directory, write_whole
from gpuwaste.models.parity import Rows, check, gate_of, settled

OPSET: Final = 17
ML_OPSET: Final = 3  # the last one whose TreeEnsembleRegressor uses float32, as XGBoost does
IR_VERSION: Final = 9
_OFFSETS: Final = ("nodes_treeids", "target_treeids")
_OBJECTIVES: Final = {True: ("binary:logistic",), False: ("reg:quantileerror", "reg:squarederror", "reg:absoluteerror")}


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export: the manifest with files and settled thresholds, and the gate's result per target."""

    manifest: Manifest
    parity: Mapping[str, Parity]


def write_bundle(
    directory: Path,
    *,
    manifest: Manifest,
    boosters: Mapping[str, Sequence[xgboost.Booster]],
    vectors: Rows,
    extra: Mapping[str, bytes] | None = None,
    expected: FeatureSet | None = None,
) -> Exported:
    """Write a bundle of XGBoost's trees to a directory that does not exist yet.

    `manifest.targets` and `boosters` name the same targets: one booster for a probability, one for each quantile
    otherwise. `vectors` are real rows [n, F] for the gate, which fills them up to 10,000. `extra` are further files
    (card.md). Each target's `file` and the manifest's `files` are set here. Raises ModelError with the gate's row, or
    the file that cannot be written; there is then no directory.
    """
    graphs: dict[str, bytes] = {}
    models: list[TargetModel] = []
    parity: dict[str, Parity] = {}
    for said in manifest.targets:
        model = replace(said, file=f"{said.target}.onnx")
        trees = boosters[said.target]
        graph = graph_of(model, trees, len(manifest.features), manifest.feature_hash)
        gate = gate_of(trees, vectors)
        model = replace(model, thresholds=settled(model, gate))
        parity[said.target] = check(model, Session(graph, str(directory / model.file)), gate)
        graphs[model.file] = graph
        models.append(model)
    whole = replace(manifest, targets=tuple(models))
    return Exported(write_files(directory, whole, {**graphs, **(extra or {})}, expected), parity)


def write_files(
    directory: Path, manifest: Manifest, files: Mapping[str, bytes], expected: FeatureSet | None = None
) -> Manifest:
    """Write files and manifest next to `directory`, load them as a program would, then rename. Raises ModelError."""
    listed = replace(manifest, files={name: sha256_hex(data) for name, data in sorted(files.items())})
    if directory.exists():
        raise ModelError(f"{directory}: exists already: choose another name")
    temporary = directory.parent / f"{TEMPORARY}{os.getpid()}-{directory.name}"
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        temporary.chmod(0o755)  # regardless of the umask: hub and commands read it
        for name, data in files.items():
            write_whole(temporary / name, data)
        write_whole(temporary / NAME, listed.to_json().encode())
        load_bundle(temporary, expected)
        temporary.rename(directory)
        sync_directory(directory.parent)
    except OSError as error:
        raise ModelError(
            f"{error.filename or directory}: cannot be written: {error.strerror}: check free space and permissions"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return listed


def graph_of(model: TargetModel, boosters: Sequence[xgboost.Booster], width: int, feature_hash: str) -> bytes:
    """Return the graph of a target's boosters: one for a probability, one for each quantile otherwise.

    `width` is the number of features. Raises ModelError for boosters that are not plain numeric trees.
    """
    link = not model.quantiles
    attributes, bases = _trees(model, boosters, width, link=link)
    nodes = [
        helper.make_node(
            "TreeEnsembleRegressor",
            [INPUT],
            ["margin" if link else OUTPUT],
            name="trees",
            domain="ai.onnx.ml",
            n_targets=len(boosters),
            base_values=bases,
            post_transform="NONE",
            aggregate_function="SUM",
            **attributes,
        )
    ]
    if link:  # ONNX Runtime ignores post_transform LOGISTIC of a regressor
        nodes.append(helper.make_node("Sigmoid", ["margin"], [OUTPUT], name="link"))
    return serialized(nodes, model.target, width=width, outputs=len(boosters), feature_hash=feature_hash)


def serialized(
    nodes: Sequence[onnx.NodeProto],
    target: str,
    *,
    width: int,
    outputs: int,
    feature_hash: str,
    initializers: Sequence[onnx.TensorProto] = (),
) -> bytes:
    """Return a model of these nodes in our format, checked, with target and feature hash in its properties."""
    graph = helper.make_graph(
        list(nodes),
        target,
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [None, width])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [None, outputs])],
        initializer=list(initializers),
    )
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION, producer_name="gpuwaste")
    helper.set_model_props(model, {TARGET_KEY: target, HASH_KEY: feature_hash})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _trees(
    model: TargetModel, boosters: Sequence[xgboost.Booster], width: int, *, link: bool
) -> tuple[dict[str, Any], list[float]]:
    """Return the attributes of all boosters' trees in one ensemble, and the base value of each output."""
    expected = len(model.quantiles) or 1
    if len(boosters) != expected:
        raise ModelError(f"{model.target}: {len(boosters)} boosters for {expected} outputs: train it again")
    whole: dict[str, Any] = {}
    bases, offset = [], 0
    for output, booster in enumerate(boosters):
        bases.append(_base(model, booster, width, link=link))
        trees = XGBConverter._process_categorical_features(  # noqa: SLF001 it marks each split as "less than"
            [json.loads(tree) for tree in booster.get_dump(dump_format="json")]
        )
        part = XGBConverter._get_default_tree_attribute_pairs(is_classifier=False)  # noqa: SLF001 the empty lists
        XGBConverter.fill_tree_attributes(trees, part, [1.0] * len(trees), is_classifier=False)
        for name in _OFFSETS:
            part[name] = [number + offset for number in part[name]]
        part["target_ids"] = [output] * len(part["target_ids"])
        for name in sorted(part):
            whole.setdefault(name, []).extend(part[name])
        offset += len(trees)
    return whole, bases


def _base(model: TargetModel, booster: xgboost.Booster, width: int, *, link: bool) -> float:
    """Return a booster's base margin. Raises ModelError for one that cannot be converted exactly."""
    learner = json.loads(booster.save_config())["learner"]
    objective = learner["objective"]["name"]
    kind = learner["gradient_booster"]["name"]
    if kind != "gbtree" or objective not in _OBJECTIVES[link] or booster.num_boosted_rounds() < 1:
        raise ModelError(f"{model.target}: a {kind} with {objective}, not the trees of this target: train it again")
    if "c" in (booster.feature_types or ()):
        raise ModelError(f"{model.target}: has a categorical column, which ONNX gets wrong: make it numeric")
    if booster.num_features() != width:
        raise ModelError(f"{model.target}: learnt from {booster.num_features()} features, not {width}: train it again")
    said = json.loads(learner["learner_model_param"]["base_score"])
    (base,) = said if isinstance(said, list) else (said,)
    value = np.float32(base)
    return float(-np.log(np.float32(1) / value - np.float32(1))) if link else float(value)

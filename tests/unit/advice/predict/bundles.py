"""Small real bundles: graphs of a few nodes, written, checked and loaded by the product's own code."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

from gpuwaste.advice.predict.bundle import FeatureSet
from gpuwaste.advice.predict.manifest import Manifest, PlattScaling, TargetModel
from gpuwaste.advice.predict.onnx_session import INPUT, OUTPUT
from gpuwaste.models.bundle_export import serialized, write_files

FEATURES = FeatureSet(7, "f" * 64, ("a", "b", "c"))
FAILURE = TargetModel("failure", "failure.onnx", calibration=PlattScaling(1.2, -0.1), thresholds={"warn": 0.5}, rows=9)
TIMEOUT = TargetModel("timeout", "timeout.onnx")
WALLTIME = TargetModel("walltime", "walltime.onnx", quantiles=(0.5, 0.9), shifts=(0.0, 0.5), rows=9)


def probability_graph(target: str, column: int = 0, features: FeatureSet = FEATURES) -> bytes:
    """Return sigmoid(column), 0.5 where it is unknown."""
    width = len(features.names)
    zero = numpy_helper.from_array(np.zeros((1, 1), np.float32), "zero")
    index = numpy_helper.from_array(np.array([column], np.int64), "index")
    nodes = [
        helper.make_node("Gather", [INPUT, "index"], ["x"], axis=1),
        helper.make_node("IsNaN", ["x"], ["unknown"]),
        helper.make_node("Where", ["unknown", "zero", "x"], ["known"]),
        helper.make_node("Sigmoid", ["known"], [OUTPUT]),
    ]
    hashed = features.hash
    return serialized(nodes, target, width=width, outputs=1, feature_hash=hashed, initializers=[zero, index])


def quantile_graph(features: FeatureSet = FEATURES) -> bytes:
    """Return log quantiles: column b, and b + 1; 0 and 1 where it is unknown."""
    zero = numpy_helper.from_array(np.zeros((1, 1), np.float32), "zero")
    steps = numpy_helper.from_array(np.array([[0.0, 1.0]], np.float32), "steps")
    index = numpy_helper.from_array(np.array([1], np.int64), "index")
    nodes = [
        helper.make_node("Gather", [INPUT, "index"], ["x"], axis=1),
        helper.make_node("IsNaN", ["x"], ["unknown"]),
        helper.make_node("Where", ["unknown", "zero", "x"], ["known"]),
        helper.make_node("Add", ["known", "steps"], [OUTPUT]),
    ]
    width, constants = len(features.names), [zero, steps, index]
    return serialized(nodes, "walltime", width=width, outputs=2, feature_hash=features.hash, initializers=constants)


def graphs() -> dict[str, bytes]:
    return {
        "failure.onnx": probability_graph("failure"),
        "timeout.onnx": probability_graph("timeout", 2),
        "walltime.onnx": quantile_graph(),
    }


def manifest_of(name: str = "one", created_utc: int = 1000, features: FeatureSet = FEATURES) -> Manifest:
    return Manifest(
        name=name,
        origin="site",
        cluster="gw",
        created_utc=created_utc,
        feature_version=features.version,
        feature_hash=features.hash,
        features=features.names,
        label_rule="A",
        end_rule="accounting",
        window=(0, 100),
        rows=9,
        targets=(FAILURE, TIMEOUT, WALLTIME),
        left_out={"memory": "no label"},
        references=(None,) * len(features.names),
        files={},
    )


def write(directory: Path, name: str = "one", created_utc: int = 1000, more: Mapping[str, bytes] | None = None) -> Path:
    """Write a sound bundle to directory/NAME and return its path."""
    write_files(directory / name, manifest_of(name, created_utc), {**graphs(), **(more or {})}, FEATURES)
    return directory / name

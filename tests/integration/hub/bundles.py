"""Model bundles for the tests of the hub: one probability, the same for every job or by some features."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.advice.predict.features import FEATURE_VERSION, FEATURES, feature_hash
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.advice.predict.onnx_session import INPUT, OUTPUT
from gpuwaste.models.bundle_export import serialized, write_files


def promote(models_dir: Path, name: str, p: float, target: str = "failure") -> str:
    """Make a bundle that gives every job the probability `p` of a target the champion; returns its hash."""
    write(models_dir, name, math.log(p / (1 - p)), target=target)
    return Registry(models_dir).promote(name).hash


def write(
    models_dir: Path,
    name: str,
    bias: float,
    weights: Mapping[str, float] | None = None,
    *,
    target: str = "failure",
    created_utc: int = 1_700_000_000,
) -> None:
    """Write a bundle whose probability is the sigmoid of a bias and of some features, each with its weight."""
    width = len(FEATURES)
    column = np.array([[(weights or {}).get(feature.name, 0.0)] for feature in FEATURES], dtype=np.float32)
    nodes = [
        helper.make_node("Mul", [INPUT, "nothing"], ["product"]),
        helper.make_node("IsNaN", ["product"], ["unknown"]),  # of NaN and of infinity
        helper.make_node("Where", ["unknown", "nothing", INPUT], ["known"]),
        helper.make_node("Gemm", ["known", "weights", "bias"], ["margin"]),
        helper.make_node("Sigmoid", ["margin"], [OUTPUT]),
    ]
    constants = {"nothing": np.zeros(1, np.float32), "weights": column, "bias": np.array([[bias]], dtype=np.float32)}
    given = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(v)) for n, v in constants.items()]
    graph = serialized([*given, *nodes], target, width=width, outputs=1, feature_hash=feature_hash())
    manifest = Manifest(
        name=name, origin="site", cluster="gw", created_utc=created_utc, feature_version=FEATURE_VERSION,
        feature_hash=feature_hash(), features=tuple(f.name for f in FEATURES), label_rule="", end_rule="accounting",
        window=(0, 1), rows=100, left_out={}, references=(None,) * width, files={},
        targets=(TargetModel(target, f"{target}.onnx", thresholds={"warn": 0.5}, rows=100),),
    )  # fmt: skip
    write_files(models_dir / name, manifest, {f"{target}.onnx": graph})

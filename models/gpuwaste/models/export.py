"""Writing a bundle: graphs through the parity gate, then all files and the manifest, whole or not at all."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import xgboost

from gpuwaste.advice.predict.bundle import FeatureSet, load_bundle
from gpuwaste.advice.predict.manifest import NAME, Manifest, TargetModel, sha256_hex
from gpuwaste.advice.predict.session import Session
from gpuwaste.advice.renewal.card_types import Parity
from gpuwaste.core.errors import ModelError
from gpuwaste.core.files import TEMPORARY, sync_directory, write_whole
from gpuwaste.models.graphs import graph_of
from gpuwaste.models.parity import Rows, check, gate_of, settled


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the manifest with its files and settled thresholds, and what the gate saw of each target."""

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
    """Write a bundle of XGBoost's trees to a directory that is not there yet.

    `manifest.targets` and `boosters` name the same targets: one booster for a probability, one for each quantile
    otherwise. `vectors` are real rows [n, F] for the gate, which fills them up to 10,000. `extra` are files to lie
    beside (card.md). Each target's `file` and the manifest's `files` are set here. Raises ModelError: the gate's row,
    or what cannot be written; there is then no directory.
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
    """Write files and manifest beside `directory`, load them as a program would, then rename. Raises ModelError."""
    listed = replace(manifest, files={name: sha256_hex(data) for name, data in sorted(files.items())})
    if directory.exists():
        raise ModelError(f"{directory}: exists already: choose another name")
    temporary = directory.parent / f"{TEMPORARY}{os.getpid()}-{directory.name}"
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        temporary.chmod(0o755)  # whatever the umask: hub and commands read it
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

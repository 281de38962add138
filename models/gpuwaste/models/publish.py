"""From fitted targets to a bundle in the registry: gate, card, plots, and beside it what a predictor goes on from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpuwaste.advice.predict.beside import CORRECTIONS, HISTORY
from gpuwaste.advice.predict.bundle import load_bundle
from gpuwaste.advice.predict.manifest import Manifest
from gpuwaste.advice.predict.registry import Registry
from gpuwaste.advice.predict.roll import roll
from gpuwaste.advice.predict.rolling import Rolling, busy_users
from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.advice.renewal.card_types import ModelCard
from gpuwaste.models.card import card_document
from gpuwaste.models.card_text import card_text
from gpuwaste.models.export import Exported, write_bundle, write_files
from gpuwaste.models.fit import Fitted
from gpuwaste.models.holdout_figures import HoldoutFigures
from gpuwaste.models.plots import plots
from gpuwaste.models.prepare import Prepared
from gpuwaste.models.split import final_cut

_GATE_ROWS: Final = 20_000  # real rows that the gate draws from


@dataclass(frozen=True, slots=True)
class Made:
    """One target to publish: the model to ship, and how the one of the first part did on the test part."""

    shipped: Fitted
    judged: HoldoutFigures


def publish(  # noqa: PLR0917 two places, and what goes there
    registry: Registry,
    folder: Path,
    manifest: Manifest,
    data: Prepared,
    made: Mapping[str, Made],
    about: Mapping[str, Any],
) -> tuple[str, ModelCard]:
    """Write and register a bundle by way of `folder`, an empty one; returns its name and its card.

    Raises ModelError, StoreError.
    """
    shipped = {name: target.shipped for name, target in made.items()}
    draft = _draft(folder, manifest, data, shipped)
    card = card_document(draft.manifest, data.table, parity=draft.parity, **about)
    files = {model.file: (folder / "draft" / model.file).read_bytes() for model in draft.manifest.targets}
    drawn: dict[str, bytes] = {}
    for name, target in made.items():
        drawn |= plots(BY_NAME[name], target.judged.figures, target.judged.curves)
    files |= drawn
    files["card.json"] = (json.dumps(card.to_json(), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
    files["card.md"] = card_text(card, drawn).encode()
    write_files(folder / manifest.name, draft.manifest, files)
    name = registry.add(folder / manifest.name)
    _snapshots(registry.models_dir / name, data, shipped)
    return name, card


def _draft(folder: Path, manifest: Manifest, data: Prepared, shipped: Mapping[str, Fitted]) -> Exported:
    """Write the graphs through the gate; the card needs what the gate saw and the thresholds that it settled."""
    step = max(1, len(data.vectors) // _GATE_ROWS)
    boosters = {name: fitted.boosters for name, fitted in shipped.items()}
    return write_bundle(folder / "draft", manifest=manifest, boosters=boosters, vectors=data.vectors[::step])


def _snapshots(directory: Path, data: Prepared, shipped: Mapping[str, Fitted]) -> None:
    """Save the state after the last event, and the corrections that the rows gave which no model had learnt from."""
    calibrating = final_cut(data.table)[1]
    bundle = load_bundle(directory)
    rolling = Rolling(bundle.manifest, bundle.hash)
    scored = np.zeros(len(data.table), dtype=np.bool_)
    scored[calibrating] = True
    busy = busy_users(data.vectors, bundle.manifest.features)
    for model in bundle.manifest.targets:
        raw = np.full((len(data.table), len(model.quantiles) or 1), np.nan, np.float32)
        raw[calibrating] = shipped[model.target].raw(data.vectors[calibrating])
        roll(data.table, model, raw, rolling=rolling, scored=scored, busy=busy)
    data.state.save(directory / HISTORY)
    rolling.save(directory / CORRECTIONS)

"""gpuwaste model train: from a history to a bundle in the registry. The champion stays until a new bundle is complete.

A bundle has its card, its plots, and the initial state of a predictor.
"""

import json
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpuwaste.advice.predict import drift
from gpuwaste.advice.predict.bundle import Registry, load_bundle, our_features
from gpuwaste.advice.predict.corrections import CORRECTIONS, HISTORY
from gpuwaste.advice.predict.manifest import Manifest
from gpuwaste.advice.predict.rolling import Rolling, busy_users, roll
from gpuwaste.advice.predict.targets import BY_NAME, TARGETS, Target
from gpuwaste.advice.renewal.card_types import ModelCard, TrainingSettings
from gpuwaste.core.errors import NoDataError
from gpuwaste.models.bundle_export import Exported, write_bundle, write_files
from gpuwaste.models.card import LABEL_RULE, card_document, card_target
from gpuwaste.models.card_text import card_text
from gpuwaste.models.holdout_figures import HoldoutFigures, judge
from gpuwaste.models.job_source import JobSource
from gpuwaste.models.parameter_search import Found, search
from gpuwaste.models.plots import plots
from gpuwaste.models.target_fit import Fitted, check_labels, fit, learnable
from gpuwaste.models.training_progress import TrainingProgress
from gpuwaste.models.training_rows import (
    HistorySplit,
    Prepared,
    final_cut,
    named_targets,
    prepare,
    reason_of,
    split_by_time,
    warnings_of,
)

_DRIFT_ROWS: Final = 50_000  # newest rows from which the shares of bins are computed
_CLUSTER: Final = 40  # characters of a cluster's name in a bundle's name
_GATE_ROWS: Final = 20_000  # real rows that the gate draws from


@dataclass(frozen=True, slots=True)
class TrainedTarget:
    """One target: the model that was judged, the one to ship, the figures, and the search's result."""

    honest: Fitted
    shipped: Fitted
    judged: HoldoutFigures
    found: Found


@dataclass(frozen=True, slots=True)
class Trained:
    """The result: the bundle's name and directory in the registry, its card, and whether it is the champion."""

    name: str
    directory: Path
    card: ModelCard
    promoted: bool
    on_trial: bool = False


def train(
    source: JobSource,
    registry: Registry,
    settings: TrainingSettings,
    *,
    created_utc: int,
    promote: bool = False,
    challenge: bool = False,
    progress: TrainingProgress | None = None,
) -> Trained:
    """Learn, judge, export, register; promote if requested or without a champion, else put on trial if requested.

    Raises NoDataError where no target can be learnt, ModelError where the gate or the registry rejects; the registry is
    unchanged then.
    """
    show = progress or TrainingProgress()
    had_champion = registry.champion() is not None  # an unusable registry is reported before the work
    chosen = named_targets(settings.targets)
    with show.stage("features"):
        data = prepare(source.table, source.text, settings.since)
    learnt, left_out = _learn(data, chosen, settings, show)
    if not learnt:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise NoDataError(f"{source.text}: no target can be trained: {reasons}")
    manifest = _manifest(source, data, learnt, left_out, created_utc)
    with show.stage("export"), tempfile.TemporaryDirectory(prefix="gpuwaste-train-") as folder:
        about = {
            "source": source.text,
            "settings": settings,
            "left": {"repeated rows of a run": data.repeated, "earlier jobs, only for their history": data.earlier},
            "warnings": warnings_of(data.table),
            "targets": {n: card_target(x.honest, x.shipped, x.judged.figures, x.found) for n, x in learnt.items()},
        }
        made = {name: _Made(x.shipped, x.judged) for name, x in learnt.items()}
        name, card = _publish(registry, Path(folder), manifest, data, made, about)
    promoted = promote or not had_champion
    if promoted:
        registry.promote(name)
    elif challenge:
        registry.challenge(name)
    return Trained(name, registry.models_dir / name, card, promoted, on_trial=challenge and not promoted)


def _learn(
    data: Prepared, chosen: Sequence[Target], settings: TrainingSettings, show: TrainingProgress
) -> tuple[dict[str, TrainedTarget], dict[str, str]]:
    split = split_by_time(data.table)
    learnt: dict[str, TrainedTarget] = {}
    left_out = {target.name: "not trained" for target in TARGETS if target not in chosen}
    began = time.monotonic()
    for number, target in enumerate(chosen):
        until = np.inf
        if settings.time_budget_s is not None:
            until = began + settings.time_budget_s * (number + 1) / len(chosen)
        why = reason_of(target, data.table)
        if why:
            left_out[target.name] = why
            continue
        try:
            learnt[target.name] = _one(target, data, split, settings, until=until, show=show)
        except NoDataError as error:
            left_out[target.name] = str(error)
    return learnt, left_out


def _one(
    target: Target,
    data: Prepared,
    split: HistorySplit,
    settings: TrainingSettings,
    *,
    until: float,
    show: TrainingProgress,
) -> TrainedTarget:
    """Search, fit and judge one target, then fit it again for shipping. Raises NoDataError."""
    table, vectors = data.table, data.vectors
    y = learnable(target, table)
    check_labels(target, y[split.train][np.isfinite(y[split.train])])
    own: dict[str, Any] = {"seed": settings.seed, "threads": settings.threads}
    with show.stage(f"search {target.name}", settings.trials) as tick:
        found = search(target, table, vectors, split.train, trials=settings.trials, until=until, tick=tick, **own)
    with show.stage(f"fit {target.name}"):
        honest = fit(target, table, vectors, split.train, split.validation, recipe=found.recipe, **own)
    with show.stage(f"judge {target.name}"):
        judged = judge(honest, table, vectors, split)
    with show.stage(f"final fit {target.name}"):
        shipped = fit(target, table, vectors, *final_cut(table), recipe=found.recipe, **own)
    return TrainedTarget(honest, shipped, judged, found)


def _manifest(
    source: JobSource,
    data: Prepared,
    learnt: Mapping[str, TrainedTarget],
    left_out: Mapping[str, str],
    created_utc: int,
) -> Manifest:
    ours, (rows, _) = our_features(), final_cut(data.table)
    seen = data.vectors[rows[-_DRIFT_ROWS:]]
    edges, shares = drift.bins(seen)
    return Manifest(
        name=bundle_name(source.cluster, created_utc),
        origin="site",
        cluster=source.cluster,
        created_utc=created_utc,
        feature_version=ours.version,
        feature_hash=ours.hash,
        features=ours.names,
        label_rule=f"{LABEL_RULE}; under-used GPUs: {data.table.under_use.text}",
        under_use=data.table.under_use,
        end_rule=data.table.end_rule,
        window=(int(data.table.submit[rows[0]]), int(data.table.submit[rows[-1]])),
        rows=len(rows),
        targets=tuple(x.shipped.model for x in learnt.values()),
        left_out=dict(left_out),
        references=drift.references(seen),
        files={},
        drift_bins=edges,
        drift_shares=shares,
    )


def bundle_name(cluster: str, created_utc: int) -> str:
    """Return a name for a bundle: the cluster and the time, in characters that a registry accepts."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", cluster).strip("-.")[:_CLUSTER] or "model"
    return f"{safe}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(created_utc))}"


@dataclass(frozen=True, slots=True)
class _Made:
    """One target to publish: the model to ship, and the result on the test part of the one fitted to the first part."""

    shipped: Fitted
    judged: HoldoutFigures


def _publish(  # noqa: PLR0917 two places, and their contents
    registry: Registry,
    folder: Path,
    manifest: Manifest,
    data: Prepared,
    made: Mapping[str, _Made],
    about: Mapping[str, Any],
) -> tuple[str, ModelCard]:
    """Write and register a bundle by way of `folder`, an empty one; return its name and its card.

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
    """Write the graphs through the gate; the card needs the gate's results and the thresholds that it settled."""
    step = max(1, len(data.vectors) // _GATE_ROWS)
    boosters = {name: fitted.boosters for name, fitted in shipped.items()}
    return write_bundle(folder / "draft", manifest=manifest, boosters=boosters, vectors=data.vectors[::step])


def _snapshots(directory: Path, data: Prepared, shipped: Mapping[str, Fitted]) -> None:
    """Save the state after the last event, and the corrections from the rows that no model had learnt from."""
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

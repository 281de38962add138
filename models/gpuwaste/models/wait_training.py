"""gpuwaste model train --waits: from a history with waits to a bundle of waits in its own registry.

The history is replayed in the order of time; the figures of the card are of trees that had not seen anything later, the
bundle's trees learn from all of it. The correction begins with the errors of that replay.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from tabulate import tabulate

from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.core.bundle_registry import WAITS
from gpuwaste.core.errors import NoDataError
from gpuwaste.core.underuse import UNDER_USE
from gpuwaste.models.bundle_export import write_bundle
from gpuwaste.models.bundle_training import bundle_name
from gpuwaste.models.job_source import JobSource
from gpuwaste.models.training_progress import TrainingProgress
from gpuwaste.models.wait_replay import WaitLog, WaitRows, wait_log, wait_rows
from gpuwaste.models.wait_trees import corrected, figures, fitted, learnt
from gpuwaste.plan.start_time.start_expectation import QUANTILES
from gpuwaste.plan.start_time.wait_correction import WaitShifts
from gpuwaste.plan.wait_bundle import MACHINE, SHIFTS, PoolSize, WaitCard, WaitMachine
from gpuwaste.plan.wait_features import TARGET, wait_features

DRAWS: Final = 20
MIN_STARTED: Final = 500  # with fewer started jobs nothing is learnt
MAX_JOBS: Final = 100_000  # the last ones of a history: bounds time and memory


@dataclass(frozen=True, slots=True)
class TrainedWaits:
    """The result of a training."""

    directory: Path
    card: WaitCard


def waits_registry(models_dir: Path) -> Registry:
    """Return the registry of bundles of waits."""
    return Registry(models_dir / WAITS, wait_features())


def train_waits(
    source: JobSource,
    models_dir: Path,
    *,
    created_utc: int,
    since: int | None = None,
    seed: int = 1,
    threads: int = 2,
    promote: bool = False,
    progress: TrainingProgress | None = None,
) -> TrainedWaits:
    """Replay, judge, fit, export, register; promote if requested or if there is no champion.

    Raises NoDataError where there are too few waits, ModelError where the gate or the registry rejects.
    """
    show, registry = progress or TrainingProgress(), waits_registry(models_dir)
    had_champion = registry.champion() is not None
    log = _log(source, since)
    with show.stage("replay of the queue", len(log.gone)) as tick:
        rows = wait_rows(log, draws=DRAWS, ticks=_ticks(tick))
    if len(rows.submit) < MIN_STARTED:
        raise NoDataError(f"{source.text}: {len(rows.submit)} jobs with a wait: at least {MIN_STARTED} are needed")
    shifts = WaitShifts()
    with show.stage("judge"):
        said = learnt(rows, seed=seed, threads=threads)
        found, judged = figures(rows, said)
        corrected(rows, said, shifts)
    now = int(max(rows.submit[-1], source.table.end.max(initial=0)))
    with show.stage("fit"):
        trees = fitted(rows, len(rows.submit), now, seed=seed, threads=threads)
    promoted = promote or not had_champion
    card = WaitCard(
        name=f"waits-{bundle_name(source.cluster, created_utc)}"[:64],
        cluster=source.cluster,
        source=source.text,
        created_utc=created_utc,
        window=(int(rows.submit[0]), int(rows.submit[-1])),
        rows=len(rows.submit),
        judged=judged,
        draws=DRAWS,
        seconds={name: round(seconds, 1) for name, seconds in show.seconds.items()},
        promoted=promoted,
        figures=found,
    )
    with show.stage("export"), tempfile.TemporaryDirectory(prefix="gpuwaste-train-") as folder:
        target = Path(folder) / card.name
        extra = {**_beside(log, shifts), "card.md": card_text(card).encode(), "card.json": card_bytes(card)}
        write_bundle(
            target,
            manifest=_manifest(card, rows),
            boosters={TARGET: trees},
            vectors=rows.features,
            extra=extra,
            expected=wait_features(),
        )
        name = registry.add(target)
    if promoted:
        registry.promote(name)
    return TrainedWaits(registry.models_dir / name, card)


def card_bytes(card: WaitCard) -> bytes:
    """Return card.json."""
    return (json.dumps(card.to_json(), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _log(source: JobSource, since: int | None) -> WaitLog:
    table = source.table
    if not table.wait_known:
        raise NoDataError(f"{source.text}: has no waits (ends are submit + run): nothing to learn waits from")
    rows = np.flatnonzero(table.submit >= (since or 0))[-MAX_JOBS:]
    if not len(rows):
        raise NoDataError(f"{source.text}: no job since then")
    return wait_log(table.take(rows), source.processors)


def _ticks(tick: Callable[[], None]) -> Iterator[None]:
    while True:
        tick()
        yield


def _beside(log: WaitLog, shifts: WaitShifts) -> Mapping[str, bytes]:
    sizes = zip(log.pools, log.capacity.tolist(), strict=True)
    machine = WaitMachine([PoolSize(name, procs, gpus) for name, (procs, gpus) in sizes], DRAWS)
    return {MACHINE: msgspec.json.encode(machine), SHIFTS: json.dumps(shifts.pack().tolist()).encode()}


def _manifest(card: WaitCard, rows: WaitRows) -> Manifest:
    ours = wait_features()
    with np.errstate(all="ignore"):
        medians = np.array([np.median(column[np.isfinite(column)]) for column in rows.features.T])
    return Manifest(
        name=card.name,
        origin="site",
        cluster=card.cluster,
        created_utc=card.created_utc,
        feature_version=ours.version,
        feature_hash=ours.hash,
        features=ours.names,
        label_rule="start - submit in seconds; a job that still waits: what it has waited so far",
        under_use=UNDER_USE,
        end_rule="accounting",
        window=card.window,
        rows=card.rows,
        targets=(TargetModel(TARGET, "", QUANTILES, rows=card.rows),),
        left_out={},
        references=tuple(float(value) if np.isfinite(value) else None for value in medians),
        files={},
    )


def card_text(card: WaitCard) -> str:
    """Return the card as Markdown."""
    first, last = (time.strftime("%Y-%m-%d", time.gmtime(instant)) for instant in card.window)
    lines = [
        f"# Waits: {card.name}",
        "",
        f"Trained on {card.rows} jobs of {card.source}, submitted from {first} to {last}.",
        f"Judged on {card.judged} jobs, each by trees that were trained on earlier jobs only. The shipped trees are",
        "trained on all jobs; that the figures carry over to them is an assumption.",
        "",
        figures_table(card, "github"),
        "",
        "*inside*: share of the waits from p10 to p90; 80 % is the aim. *loss*: mean pinball loss of p10, p50 and p90",
        "in seconds. *beside best*: the loss compared with the best of the baselines: single waits, rolling",
        "quantiles, requests. The model is worth its use where its last row has the smallest loss.",
        "",
        "Not known to the model: priorities, limits of users and accounts, dependencies, reservations, free nodes.",
        "",
    ]
    return "\n".join(lines)


def figures_table(card: WaitCard, style: str = "plain") -> str:
    """Return a row for each way to predict."""
    rows = [
        (
            one.method,
            f"{one.coverage:.1%}",
            f"{one.below:.1%}",
            f"{one.above:.1%}",
            f"{one.pinball_s:.1f}",
            f"{one.beside_best:+.1%}",
        )
        for one in card.figures
    ]
    heads = ("METHOD", "INSIDE", "BELOW", "ABOVE", "LOSS (s)", "BESIDE BEST")
    return tabulate(rows, headers=heads, tablefmt=style, disable_numparse=True, colalign=("left", *["right"] * 5))

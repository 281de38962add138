"""The search for a target's parameters: a fixed number of trials on folds that follow each other in time.

The recipe is the first trial, and stays unless another one is better in the mean and in most folds: a better mean may
be one lucky fold. Only rows before validation are used.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import optuna
import xgboost
from numpy.typing import NDArray

from gpuwaste.advice.predict.targets import Target, request_cap
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.models.prediction_metrics import average_precision
from gpuwaste.models.target_fit import (
    DEFAULTS,
    Recipe,
    Vectors,
    columns,
    conformal,
    grow,
    lacking,
    learnable,
    objectives,
)
from gpuwaste.models.training_rows import Rows, folds_by_time

FOLDS: Final = 3
MAX_ROWS: Final = 16_000  # newest labelled rows that a search uses
_QUANTILE: Final = 0.95  # the one quantile that represents all of a target
_STEP: Final = 50  # of the number of trees
_LEAST: Final = 0.5  # value used for a request of 0: log needs a positive number


@dataclass(frozen=True, slots=True)
class SearchTrial:
    """One trial: its parameters, and its score in each fold (higher is better)."""

    recipe: Recipe
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The score that the search maximizes."""
        return float(np.mean(self.scores))


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search: the recipe to learn with, and all trials, that of the default recipe first."""

    recipe: Recipe
    trials: tuple[SearchTrial, ...] = ()
    note: str = ""

    @property
    def changed(self) -> bool:
        """Whether a trial beat the recipe."""
        return bool(self.trials) and self.recipe is not self.trials[0].recipe


@dataclass(frozen=True, slots=True)
class _Fold:
    """A fold's matrix to learn from, and what is judged: vectors, y, and the jobs' requests (log, or NaN)."""

    data: xgboost.QuantileDMatrix
    vectors: Vectors
    y: NDArray[np.float64]
    asked: NDArray[np.float64]


def search(
    target: Target,
    table: JobTable,
    vectors: Vectors,
    rows: Rows,
    *,
    trials: int,
    seed: int = 1,
    threads: int = 2,
    until: float = np.inf,
    tick: Callable[[], None] = lambda: None,
) -> Found:
    """Search on `rows`, the part to learn from; no new trial begins at or after `until` (time.monotonic).

    Equal rows, trials and seed give an equal result, except for a search that `until` cut short.
    """
    default = DEFAULTS[target.kind]
    if trials < 1:
        return Found(default, note="no search was requested")
    folds = _folds(target, table, vectors, rows, {**default.params, "nthread": threads})
    if not folds:
        return Found(default, note="too few labelled jobs for folds in time")
    base = {"seed": seed, "nthread": threads, "tree_method": "hist"}
    base |= objectives(replace(target, quantiles=(_QUANTILE,)))[0]
    done: list[SearchTrial] = []

    def objective(trial: optuna.Trial) -> float:
        drawn = _drawn(trial, default)  # also for the first trial, or the sampler would not know its parameters
        recipe = drawn if done else default
        done.append(SearchTrial(recipe, tuple(_score(target, fold, recipe, base) for fold in folds)))
        tick()
        return done[-1].mean

    def stop(study: optuna.Study, _: optuna.trial.FrozenTrial) -> None:
        if time.monotonic() >= until:
            study.stop()

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # a trial ended by Ctrl-C logs a warning with a traceback
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial({**{name: default.params[name] for name in _SPACE}, "rounds": default.rounds})
    study.optimize(objective, n_trials=trials, callbacks=[stop])
    return Found(_chosen(done), tuple(done))


def _chosen(trials: Sequence[SearchTrial]) -> Recipe:
    """Return the best trial that beats the recipe in the mean and in most folds, else the recipe."""
    own = trials[0]
    wins = [sum(a > b for a, b in zip(t.scores, own.scores, strict=True)) for t in trials]
    better = [t for t, won in zip(trials, wins, strict=True) if t.mean > own.mean and won * 2 > len(own.scores)]
    return max(better, key=lambda t: t.mean).recipe if better else own.recipe


_SPACE: Final[dict[str, Callable[[optuna.Trial], float]]] = {
    "learning_rate": lambda t: t.suggest_float("learning_rate", 0.01, 0.15, log=True),
    "max_depth": lambda t: t.suggest_int("max_depth", 3, 8),
    "min_child_weight": lambda t: t.suggest_float("min_child_weight", 3.0, 100.0, log=True),
    "subsample": lambda t: t.suggest_float("subsample", 0.5, 1.0),
    "colsample_bytree": lambda t: t.suggest_float("colsample_bytree", 0.1, 0.8),
    "reg_lambda": lambda t: t.suggest_float("reg_lambda", 0.1, 30.0, log=True),
}


def _drawn(trial: optuna.Trial, default: Recipe) -> Recipe:
    """Draw a recipe; never more trees than the default: each one costs time in every prediction."""
    params = {**default.params, **{name: draw(trial) for name, draw in _SPACE.items()}}
    rounds = trial.suggest_int("rounds", min(100, default.rounds), default.rounds, step=_STEP)
    return Recipe(params, rounds, default.max_rows)


def _folds(target: Target, table: JobTable, vectors: Vectors, rows: Rows, params: dict[str, Any]) -> list[_Fold]:
    y = learnable(target, table)
    asked = np.log(np.maximum(request_cap(target.name, table), _LEAST))
    labelled = rows[np.isfinite(y[rows])][-MAX_ROWS:]
    pairs = folds_by_time(table, labelled, FOLDS)
    return [
        _Fold(columns(vectors[learn], y[learn], params), vectors[judge], y[judge].astype(np.float64), asked[judge])
        for learn, judge in pairs
        if not lacking(target, y[learn]) and not lacking(target, y[judge])
    ]


def _score(target: Target, fold: _Fold, recipe: Recipe, base: dict[str, Any]) -> float:
    """Return average precision, or minus the mean log of predicted over used once the quantile holds exactly.

    The pinball loss would also reward a level that the rolling correction sets anyway.
    """
    booster = grow(fold.data, {**recipe.on(fold.data.num_row()), **base}, recipe.rounds)
    said = booster.inplace_predict(fold.vectors).astype(np.float64)
    if target.kind == "probability":
        return average_precision(fold.y, said)
    gap = fold.y - said
    limit = np.fmin(said + conformal(gap, _QUANTILE), fold.asked)
    return -float((limit - fold.y).mean())

"""The search for parameters."""

import logging
import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.models.parameter_search import Found, SearchTrial, _chosen, search
from gpuwaste.models.target_fit import DEFAULTS
from gpuwaste.testing.planted import planted_table

JOBS = 700


def told(target: str, seed: int = 1, trials: int = 3, until: float = np.inf) -> Found:
    table, vectors = made()
    rows = np.arange(500)
    return search(BY_NAME[target], table, vectors, rows, trials=trials, seed=seed, threads=1, until=until)


def made() -> tuple[JobTable, NDArray[np.float32]]:
    table = planted_table(JOBS, seed=1, users=10)
    vectors = np.column_stack([table.limit_s, table.name.codes, table.cpus]).astype(np.float32)
    return table, vectors


def test_equal_seeds_search_alike_and_begin_with_the_recipe() -> None:
    """The first trial is the recipe's own parameters; the drawn ones depend on the seed and stay within its trees."""
    first, again, other = told("failure"), told("failure"), told("failure", seed=2)
    assert first.trials == again.trials
    assert first.trials[0].recipe == DEFAULTS["probability"]
    assert [t.recipe for t in first.trials[1:]] != [t.recipe for t in other.trials[1:]]
    assert all(trial.recipe.rounds <= DEFAULTS["probability"].rounds for trial in first.trials)


def test_what_came_later_changes_nothing() -> None:
    """Vectors and labels of validation and test rows are not looked at: with noise in their place all is equal."""
    table, vectors = made()
    noise = vectors.copy()
    noise[500:] = np.random.default_rng(0).normal(size=noise[500:].shape)
    target, rows = BY_NAME["walltime"], np.arange(500)
    found = [search(target, table, v, rows, trials=2, threads=1).trials for v in (vectors, noise)]
    assert found[0] == found[1]


def test_time_and_labels_end_a_search() -> None:
    """After `until` no new trial begins, but the recipe was tried; without labels there is no search."""
    assert len(told("failure", until=time.monotonic()).trials) == 1
    table, vectors = made()
    nothing = search(BY_NAME["failure"], table, vectors, np.arange(20), trials=3, threads=1)
    assert (nothing.trials, nothing.changed) == ((), False)
    assert nothing.note


def test_an_interrupted_trial_is_no_message(caplog: pytest.LogCaptureFixture) -> None:
    """Ctrl-C during a trial goes on to the command, without the library's warning and traceback."""

    def press() -> None:
        raise KeyboardInterrupt

    table, vectors = made()
    library = logging.getLogger("optuna")
    library.addHandler(caplog.handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            search(BY_NAME["failure"], table, vectors, np.arange(500), trials=1, threads=1, tick=press)
    finally:
        library.removeHandler(caplog.handler)
    assert caplog.records == []


def test_a_trial_has_to_beat_the_recipe_in_most_folds() -> None:
    """The better mean of one lucky fold is not enough."""
    own, lucky, good = (
        SearchTrial(DEFAULTS["probability"], (0.5, 0.5, 0.5)),
        drawn(0.9, 0.4, 0.4),
        drawn(0.6, 0.6, 0.45),
    )
    assert _chosen([own, lucky]) is own.recipe
    assert _chosen([own, lucky, good]) is good.recipe


def drawn(*scores: float) -> SearchTrial:
    return SearchTrial(replace(DEFAULTS["probability"], rounds=100), scores)

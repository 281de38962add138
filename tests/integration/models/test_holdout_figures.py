"""The figures of the test part, from models whose answers are known."""

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from msgspec import to_builtins
from numpy.typing import NDArray

from gpuwaste.advice.predict.manifest import PlattScaling, TargetModel
from gpuwaste.advice.predict.targets import BY_NAME, labels
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.models.holdout_figures import NAMES, judge
from gpuwaste.models.target_fit import Fitted
from gpuwaste.models.training_rows import split_by_time
from gpuwaste.testing.planted import planted_table

if TYPE_CHECKING:
    import xgboost


class Column:
    """A booster that returns a column of the vectors."""

    def __init__(self, number: int) -> None:
        self._number = number

    def inplace_predict(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        return vectors[:, self._number]


def wide(*columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors of the right width, whose first columns are the models' answers and the others unknown."""
    vectors = np.full((len(columns[0]), len(NAMES)), np.nan, np.float32)
    vectors[:, : len(columns)] = np.column_stack(columns)
    return vectors


def model(target: str, columns: int, **said: float) -> Fitted:
    boosters = tuple(cast("xgboost.Booster", Column(i)) for i in range(columns))
    return Fitted(
        BY_NAME[target],
        boosters,
        TargetModel(target, "", BY_NAME[target].quantiles, PlattScaling(), said, (), 100, 0.5),
    )


def failing(jobs: int = 1000) -> tuple[JobTable, NDArray[np.float32]]:
    table = planted_table(jobs, users=15)
    y = labels("failure", table)
    return table, wide(np.where(np.isfinite(y), np.clip(y, 0.02, 0.98), 0.5).astype(np.float32))


def test_an_oracle_is_perfect_and_a_coin_is_not() -> None:
    """Labels as answers give precision and recall 1; answers without content give the base rate."""
    table, truth = failing()
    split = split_by_time(table)
    figures = to_builtins(judge(model("failure", 1, f1=0.5, warn=0.5), table, truth, split).figures)
    assert figures["average_precision"] == pytest.approx({"value": 1.0, "low": 1.0, "high": 1.0})
    assert figures["operating_points"]["warn"]["recall"]["value"] == 1.0
    assert figures["ece"]["value"] < 0.05
    coin = np.random.default_rng(0).random(len(truth)).astype(np.float32)
    figures = to_builtins(judge(model("failure", 1, f1=0.0), table, wide(coin), split).figures)
    assert figures["average_precision"]["value"] == pytest.approx(figures["base_rate"], abs=0.1)
    assert figures["operating_points"]["f1"]["share"] == 1.0
    assert figures["brier_by_user"]["worst_decile"] >= figures["brier_by_user"]["mean"]


def test_rows_before_validation_are_never_asked() -> None:
    """Answers for the rows learnt from do not matter: with NaN there all figures are the same."""
    table, truth = failing()
    split = split_by_time(table)
    blind = truth.copy()
    blind[: int(split.validation[0])] = np.nan
    fitted = model("failure", 1, f1=0.5)
    assert judge(fitted, table, blind, split) == judge(fitted, table, truth, split)


def test_quantiles_are_judged_with_the_request_as_their_cap() -> None:
    """Four quantiles far above every limit end at the request: nothing is above them, reserved is what was asked."""
    table = planted_table(800, users=15)
    far = wide(*[np.full(800, 20.0, np.float32)] * 4)
    figures = to_builtins(judge(model("walltime", 4), table, far, split_by_time(table)).figures)
    at_first = figures["quantiles"]["0.99"]
    assert at_first["under_rate"]["value"] <= 0.05
    assert at_first["reserved_over_used"]["value"] <= figures["request"]["reserved_over_used"]
    asked = float((table.limit_s * table.cpus)[560:].sum() / (table.run_s * table.cpus)[560:].sum())
    assert figures["request"]["reserved_over_used"] == pytest.approx(asked)


def test_a_test_part_of_one_class_says_so() -> None:
    """No curve of precision is made up where all test jobs ended alike, and too few labelled ones are no figures."""
    table, truth = failing()
    split = split_by_time(table)
    outcome = table.outcome.copy()
    outcome[700:] = 1
    figures = to_builtins(judge(model("failure", 1, f1=0.5), replace(table, outcome=outcome), truth, split).figures)
    assert "all 300 labelled jobs of the test part are alike" in figures["note"]
    assert "average_precision" not in figures
    outcome[710:] = 0
    few = judge(model("failure", 1), replace(table, outcome=outcome), truth, split)
    assert "10 labelled jobs" in str(few.figures.note)
    assert few.curves == {}

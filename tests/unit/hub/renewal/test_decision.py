"""The rule: better by the margin in enough draws of enough jobs, and worse in nothing; else all stays as it is."""

from dataclasses import replace

import numpy as np
import pytest

from gpuwaste.advice.predict.model_comparison import PairedComparison, PairedFigure
from gpuwaste.advice.renewal.promotion_rule import promotion, rollback
from gpuwaste.advice.renewal.trial_types import checked_models
from gpuwaste.core.advice_config import ModelsConfig
from gpuwaste.core.errors import ConfigError

RULE = ModelsConfig(renew=True, min_outcomes=100, min_users=10)


def figure(draws: list[float], first: float = 0.4) -> PairedFigure:
    """Return a figure with these differences by draw."""
    found = np.array(draws)
    mean = float(found.mean()) if draws else float("nan")
    return PairedFigure(first, first + mean, mean, min(draws, default=0.0), max(draws, default=0.0), found)


def compared(gains: list[float], brier: float = -0.001, jobs: int = 500, users: int = 30) -> PairedComparison:
    """Return ten draws with these gains in average precision."""
    return PairedComparison(jobs, users, jobs // 4, figure(gains), figure([brier] * 10), 10)


BETTER = compared([0.02] * 9 + [-0.01])
SAME = compared([0.001, -0.001] * 5)
WORSE = compared([-0.02] * 10)


def test_better_in_nine_draws_of_ten_is_promoted() -> None:
    """The reason says by how much, in how many draws, of how many jobs and users."""
    found = promotion({"failure": BETTER, "timeout": SAME}, RULE)
    assert found.change
    assert found.reason == (
        "failure: average precision 0.400 -> 0.417, better by 0.005 in 90 % of the draws, 500 jobs of 30 users"
    )


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({}, "not enough outcomes: failure 0 of 100"),
        ({"failure": replace(BETTER, jobs=99)}, "not enough outcomes: failure 99 of 100"),
        ({"failure": replace(BETTER, users=9)}, "not enough outcomes: failure of 9 users, 10 needed"),
        ({"failure": replace(BETTER, drawn=30)}, "not enough outcomes: failure: too few of one kind"),
        ({"failure": compared([0.02] * 8 + [0.004] * 2)}, "better by 0.005 in 80 % of the draws, 90 % needed"),
        ({"failure": SAME}, "better by 0.005 in 0 % of the draws, 90 % needed"),
        ({"failure": compared([0.02] * 10, brier=0.001)}, "failure: ranks better, but its probabilities are worse"),
        ({"failure": BETTER, "timeout": WORSE}, "timeout: worse by 0.005"),
    ],
)
def test_what_is_not_surely_better_stays_on_trial(found: dict[str, PairedComparison], reason: str) -> None:
    """Each reason alone is enough."""
    decided = promotion(found, RULE)
    assert not decided.change
    assert reason in decided.reason


def test_every_target_that_decides_has_to_be_better() -> None:
    """With two of them one is not enough; a target with few jobs neither helps nor harms."""
    both = replace(RULE, targets=("failure", "timeout"))
    assert not promotion({"failure": BETTER, "timeout": SAME}, both).change
    assert promotion({"failure": BETTER, "timeout": BETTER}, both).change
    assert promotion({"failure": BETTER, "timeout": replace(WORSE, jobs=50)}, RULE).change


def test_only_a_model_that_is_surely_worse_than_the_baseline_is_rolled_back() -> None:
    """The second of the comparison is the baseline: what is better there is worse for the model in use."""
    assert rollback({"failure": BETTER}, RULE).change
    assert "the baseline's 0.417" in rollback({"failure": BETTER}, RULE).reason
    for found in (
        {},
        {"failure": SAME},
        {"failure": WORSE},
        {"failure": replace(BETTER, jobs=99)},
        {"timeout": BETTER},
    ):
        assert not rollback(found, RULE).change


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"targets": ("failur",)}, "targets"),
        ({"targets": ()}, "targets"),
        ({"min_outcomes": 0}, "min_outcomes"),
        ({"min_users": 1}, "min_users"),
    ],
)
def test_keys_that_make_no_rule_are_refused(keys: dict[str, object], word: str) -> None:
    """One line that names the key."""
    with pytest.raises(ConfigError, match=rf"\[models\] .*{word}"):
        checked_models(replace(ModelsConfig(), **keys))  # type: ignore[arg-type]


def test_as_installed_nothing_is_changed() -> None:
    """The defaults make a rule, and it is off."""
    assert not checked_models(ModelsConfig()).renew

"""What a model on trial has to show: section [models], checked, and what no site sets."""

from typing import Final

from gpuwaste.advice.verdicts.hits import TARGETS
from gpuwaste.core.advice_config import ModelsConfig
from gpuwaste.core.errors import ConfigError

MARGIN: Final = 0.005  # of average precision: less is not worth a change
CONFIDENCE: Final = 0.9  # the share of the draws in which a target is better by the margin


def checked_models(models: ModelsConfig) -> ModelsConfig:
    """Check the keys. Raises ConfigError."""
    unknown = [name for name in models.targets if name not in TARGETS]
    if unknown or not models.targets:
        raise ConfigError(f"[models] targets {list(models.targets)}: expected some of {', '.join(TARGETS)}")
    if models.min_outcomes < 1 or models.min_users < 2:  # noqa: PLR2004 one user has no interval
        raise ConfigError("[models] min_outcomes must be 1 or more, min_users 2 or more")
    return models


def every_s(models: ModelsConfig) -> float:
    """Return the seconds between two comparisons."""
    return max(models.compare_every_s, 1.0)

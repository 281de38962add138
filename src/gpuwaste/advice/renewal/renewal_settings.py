"""What a model on trial has to show: section [models], checked."""

from dataclasses import dataclass

from gpuwaste.advice.verdicts.hits import TARGETS
from gpuwaste.core.advice_config import ModelsConfig
from gpuwaste.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RenewalSettings:
    """The rule: `targets` decide, each by `margin` in a share `confidence` of the draws, with enough jobs and users."""

    renew: bool = False
    targets: tuple[str, ...] = ("failure",)
    margin: float = 0.005  # of average precision: less is not worth a change
    confidence: float = 0.9
    min_outcomes: int = 1000
    min_users: int = 20
    every_s: float = 3600.0

    @classmethod
    def from_config(cls, models: ModelsConfig) -> "RenewalSettings":
        """Check the keys. Raises ConfigError."""
        unknown = [name for name in models.targets if name not in TARGETS]
        if unknown or not models.targets:
            raise ConfigError(f"[models] targets {list(models.targets)}: expected some of {', '.join(TARGETS)}")
        if models.min_outcomes < 1 or models.min_users < 2:  # noqa: PLR2004 one user has no interval
            raise ConfigError("[models] min_outcomes must be 1 or more, min_users 2 or more")
        return cls(
            renew=models.renew,
            targets=models.targets,
            min_outcomes=models.min_outcomes,
            min_users=models.min_users,
            every_s=max(models.compare_every_s, 1.0),
        )

"""[hub] as re-scoring uses it: checked once, at the start."""

from dataclasses import dataclass
from typing import Final, Self

from gpuwaste.advice.rescoring.rescore_store import Lead
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError

EARLY_S: Final = 600.0  # after the start
SHARE: Final = 0.5  # of a limit that is shorter than twice the lead


@dataclass(frozen=True, slots=True)
class RescoreSettings:
    """Whether running jobs are scored again, when, and from which probability on a limit is said to be near."""

    enabled: bool
    lead: Lead
    least_p: float

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Check the keys. Raises ConfigError."""
        hub = config.hub
        if hub.limit_near_p > 1:
            raise ConfigError(f"[hub] limit_near_p {hub.limit_near_p:g}: expected a probability 0..1")
        if config.notify.limit_mail and not hub.rescore:
            raise ConfigError("[notify] limit_mail needs [hub] rescore = true: without it no limit is checked")
        return cls(hub.rescore, Lead(EARLY_S, hub.limit_near_s, SHARE), hub.limit_near_p)

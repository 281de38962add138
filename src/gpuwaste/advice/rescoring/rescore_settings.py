"""[hub] as re-scoring uses it: checked once, at the start."""

from dataclasses import dataclass
from typing import Final, Self

from gpuwaste.advice.rescoring.rescore_store import Lead
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError

EARLY_S: Final = 600.0  # after the start
NEAR_S: Final = 2400.0  # before the limit: time to write a checkpoint, or to ask for more
NEAR_P: Final = 0.5  # a job that will rather end before its limit gives no event and no mail
SHARE: Final = 0.5  # of a limit that is shorter than twice the lead
LEAD: Final = Lead(EARLY_S, NEAR_S, SHARE)


@dataclass(frozen=True, slots=True)
class RescoreSettings:
    """Whether running jobs are scored again, when, and from which probability on a limit is said to be near."""

    enabled: bool
    lead: Lead = LEAD
    least_p: float = NEAR_P

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Check the keys. Raises ConfigError."""
        if config.notify.limit_mail and not config.hub.rescore:
            raise ConfigError("[notify] limit_mail needs [hub] rescore = true: without it no limit is checked")
        return cls(config.hub.rescore)

"""Limits, partitions and reservations of the site, for expected starts: read seldom, and only for a question."""

from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError, ParseError, SlurmError
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.site.cluster_model import ClusterModel

SITE_S: Final = 300
_NO_LIMITS: Final = log_event.warning(
    "expected-starts-no-limits: cannot read limits and reservations: {error}",
    "Expected starts of `gpuwaste plan` use the limits and reservations that were read last, none after a start of the"
    " hub. Check `scontrol show reservation` and `sacctmgr show assoc` as the user of the hub.",
)


class SiteModel:
    """Asks Slurm for the site at most each SITE_S; one thread at a time."""

    def __init__(self, slurm: SlurmClient) -> None:
        self._slurm = slurm
        self._model: ClusterModel | None = None
        self._read_at: int | None = None
        self._trouble = RepeatSuppressor()

    def at(self, now: int) -> ClusterModel | None:
        """Return the site; after a failure as it was read last, None where it never was: then nobody is limited."""
        if self._read_at is not None and 0 <= now - self._read_at < SITE_S:
            return self._model
        self._read_at = now
        try:
            self._model = self._slurm.site()
        except (SlurmError, ParseError, ConfigError) as error:
            if self._trouble.news(str(error)):
                _NO_LIMITS.log(error=error)
        else:
            self._trouble.over()
        return self._model

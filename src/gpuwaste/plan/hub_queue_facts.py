"""What the hub reads less often for expected starts: last month's run times, the site's limits and reservations."""

from typing import TYPE_CHECKING, Final

from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError, ParseError, SlurmError
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.units import DAY_S
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.site.cluster_model import ClusterModel
from gpuwaste.store.hub.hub_store import HubStore

if TYPE_CHECKING:
    from gpuwaste.plan.start_time.run_times import PastRuns

PAST_S: Final = 30 * DAY_S
PAST_EVERY_S: Final = 900
MAX_PAST: Final = 50_000
SITE_S: Final = 300
_NO_LIMITS: Final = log_event.warning(
    "expected-starts-no-limits: cannot read limits and reservations: {error}",
    "Expected starts of `gpuwaste plan` use the limits and reservations that were read last, none after a start of the"
    " hub. Check `scontrol show reservation` and `sacctmgr show assoc` as the user of the hub.",
)


class PastRunTimes:
    """Holds the run times in seconds by user and shape; one thread at a time."""

    def __init__(self, store: HubStore) -> None:
        self._store = store
        self._past: PastRuns | None = None
        self._read_at = 0

    def at(self, now: int) -> "PastRuns":
        """Return the run times known at `now`, Unix seconds."""
        if self._past is None or not 0 <= now - self._read_at < PAST_EVERY_S:
            self._past, self._read_at = self._read(now), now
        return self._past

    def _read(self, now: int) -> "PastRuns":
        from gpuwaste.plan.start_time.run_times import PastRuns  # noqa: PLC0415 needs NumPy

        past = PastRuns()
        with self._store.reader() as db:
            rows = db.rows("runs_ended_last", {"since": now - PAST_S, "most": MAX_PAST})
        for row in rows:
            past.observe(row["user"], (row["partition"], row["gpus"]), row["run_s"], row["time_limit_s"])
        return past


class SiteModel:
    """Reads the site from Slurm at most every SITE_S; one thread at a time."""

    def __init__(self, slurm: SlurmClient) -> None:
        self._slurm = slurm
        self._model: ClusterModel | None = None
        self._read_at: int | None = None
        self._trouble = RepeatSuppressor()

    def at(self, now: int) -> ClusterModel | None:
        """Return the site; after a failure the last one read, None if there was none: then nobody is limited."""
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

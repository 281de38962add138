"""The run times of the last month's jobs, from which the plays of the queue draw; read again each PAST_EVERY_S."""

from typing import TYPE_CHECKING, Final

from gpuwaste.core.units import DAY_S
from gpuwaste.store.hub.hub_store import HubStore

if TYPE_CHECKING:
    from gpuwaste.plan.start_time.past_runs import PastRuns

PAST_S: Final = 30 * DAY_S
PAST_EVERY_S: Final = 900
MAX_PAST: Final = 50_000


class PastRunTimes:
    """Keeps the run times in seconds by user and shape; one thread at a time."""

    def __init__(self, store: HubStore) -> None:
        self._store = store
        self._past: PastRuns | None = None
        self._read_at = 0

    def at(self, now: int) -> "PastRuns":
        """Return those known at `now`, Unix seconds."""
        if self._past is None or not 0 <= now - self._read_at < PAST_EVERY_S:
            self._past, self._read_at = self._read(now), now
        return self._past

    def _read(self, now: int) -> "PastRuns":
        from gpuwaste.plan.start_time.past_runs import PastRuns  # noqa: PLC0415 needs NumPy

        past = PastRuns()
        with self._store.reader() as db:
            rows = db.rows("runs_ended_last", {"since": now - PAST_S, "most": MAX_PAST})
        for row in rows:
            past.observe(row["user"], (row["partition"], row["gpus"]), row["run_s"], row["time_limit_s"])
        return past

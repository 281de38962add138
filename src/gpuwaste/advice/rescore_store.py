"""RescoreStore: predictions of running jobs after their submission, one per moment of a run, in the hub's store.

Rescore is one of them; the settings are those of [hub], checked once, at the start.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from msgspec import Meta

from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.text import storable
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import append_told
from gpuwaste.jobs.run_changes import job_record
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import Columns, to_json

Moment = Literal["start", "early", "limit"]
MOST: Final = 1000  # rows read for the runs of one job


@dataclass(frozen=True, slots=True)
class Rescore:
    """The prediction at one moment of a run: its start, ten minutes later (early), or before its time limit (limit)."""

    run: RunKey
    moment: Moment
    at_utc: Annotated[int, Meta(description="When it was predicted, UTC seconds.")]
    p: Annotated[Mapping[str, float], Meta(description="Probability by target.")] = field(default_factory=dict)
    limit_p: Annotated[float | None, Meta(description="Probability of the time limit, given the run time so far.")] = (
        None
    )
    limit_at: Annotated[int | None, Meta(description="When the time limit is reached, UTC seconds.")] = None
    usual: Annotated[bool, Meta(description="Whether the user's jobs like it all reach their time limit.")] = False
    model_hash: Annotated[str, Meta(description="Empty: by job history only.")] = ""


_COLUMNS: Final = Columns(Rescore)
EARLY_S: Final = 600.0  # after the start
NEAR_S: Final = 2400.0  # before the limit: time to write a checkpoint, or to ask for more
NEAR_P: Final = 0.5  # a job more likely to end before its limit gives no event and no mail
SHARE: Final = 0.5  # of a limit that is shorter than twice the lead


@dataclass(frozen=True, slots=True)
class Lead:
    """When: `early_s` after its start; `lead_s` before its limit, at most `share` of the limit."""

    early_s: float
    lead_s: float
    share: float

    def parameters(self, cluster: str, now: int) -> dict[str, Any]:
        """Return the parameters of the queries."""
        early_s, lead_s = int(self.early_s), int(self.lead_s)
        return {"cluster": cluster, "now": now, "early_s": early_s, "lead_s": lead_s, "share": self.share}


LEAD: Final = Lead(EARLY_S, NEAR_S, SHARE)


class LimitForecast(NamedTuple):
    """A running job and its new prediction."""

    job: JobRecord
    said: Rescore


@dataclass(frozen=True, slots=True)
class DueRun:
    """A running job that is to be scored again; `limit_at` is when its limit is reached, None without a limit."""

    job: JobRecord
    moment: Moment
    limit_at: int | None


class RescoreStore:
    """The table of repeated predictions; threads share it as they share the store."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def due(self, cluster: str, lead: Lead, most: int) -> list[DueRun]:
        """Return what is due now, up to `most`, those before their limit last. Raises StoreError."""
        with self._store.reader() as db:
            rows = db.rows("rescored_due", {**lead.parameters(cluster, self._clock.utc_s()), "most": most})
        return [DueRun(job_record(row), row["moment"], row["limit_at"]) for row in rows]

    def next_at(self, cluster: str, lead: Lead) -> int | None:
        """Return the first instant after now at which a known run is due. Raises StoreError."""
        with self._store.reader() as db:
            found = db.rows("rescored_next", lead.parameters(cluster, self._clock.utc_s()))[0]["at_utc"]
        return None if found is None else int(found)

    def add(
        self, said: Sequence[Rescore], told: Sequence[StoredEvent], also: Callable[[Database], None] | None = None
    ) -> int:
        """Store predictions with their events and what `also` writes, all or nothing. Return how many are new.

        Raises StoreError.
        """
        if not said:
            return 0
        with self._store.writing() as db:
            rows = to_json(map(_COLUMNS.row, said))
            new = len(db.run("rescored_add", {"rows": rows, "shape": _COLUMNS.shape}).fetchall())
            if told:
                append_told(db, told, self._clock.utc_s())
            if also is not None:
                also(db)
        return new

    def of(self, runs: Collection[RunKey]) -> list[Rescore]:
        """Return the predictions of some runs, the oldest first. Raises StoreError."""
        keys = [
            {"cluster": storable(run.cluster), "job_id": run.job_id, "run_start": run.start} for run in sorted(runs)
        ]
        with self._store.reader() as db:
            rows = db.rows("rescored_of", {"runs": to_json(keys), "most": MOST})
        return [_rescore(row) for row in rows]


def _rescore(row: Mapping[str, Any]) -> Rescore:
    named = {name: row[name] for name in ("moment", "at_utc", "p", "limit_p", "limit_at", "usual", "model_hash")}
    return Rescore(RunKey(row["cluster"], row["job_id"], row["run_start"]), **named)


@dataclass(frozen=True, slots=True)
class RescoreSettings:
    """Whether running jobs are scored again, when, and from which probability on a limit is reported as near."""

    enabled: bool
    lead: Lead = LEAD
    least_p: float = NEAR_P

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Check the keys. Raises ConfigError."""
        if config.notify.limit_mail and not config.hub.rescore:
            raise ConfigError("[notify] limit_mail needs [hub] rescore = true: without it no limit is checked")
        return cls(config.hub.rescore)

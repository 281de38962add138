"""VerdictStore: the audit in the hub's store. Verdicts are stored once, and read joined with how their jobs ended.

VerdictCounts counts the stored ones, periodically, in the importer's loop.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

from prometheus_client.core import GaugeMetricFamily, Metric

from gpuwaste.advice.verdicts.hits import HIT_SHARE, all_ends
from gpuwaste.advice.verdicts.verdict_types import VerdictQuestion
from gpuwaste.core.clock import Clock
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.scope import ClusterAccount, account_rows
from gpuwaste.core.underuse import UnderUse
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import append_told
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Imported
from gpuwaste.jobs.run_store import FAR_S
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import Columns, to_json

ALL: Final = 2**62
SLACK_S: Final = 60  # tolerance of an expected start: a pass of the backfill and more
MAX_PAIRS: Final = 50_000  # newest verdicts used to compare two bundles
PLANS_A_DAY: Final = 1000  # of one user: users choose these jobs themselves
YOUNG_S: Final = HOUR_S  # until then the job may be missing from accounting
VERDICT_COLUMNS: Final = Columns(Verdict, {"node": "VARCHAR", "taken_utc": "BIGINT"})
_ENDS: Final = to_json(
    {"target": t, "state": e.state, "ran": e.ran, "under": e.under, "fewer": e.fewer, "late": e.at_limit, "true_": said}
    for t, e, said in all_ends()
)
COUNT_EVERY_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick(VerdictQuestion):
    """Which of the requested verdicts a reader may see.

    `accounts` is None for a reader who may see all; else the accounts whose verdicts they see in addition to `reader`'s
    own, as far as they were printed.
    """

    start: int = 0
    end: int = FAR_S
    limit: int = ALL
    accounts: Collection[ClusterAccount] | None = None
    reader: str = ""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the query that selects the verdicts."""
        return {
            "from_us": min(self.start, FAR_S // 10**6) * 10**6,
            "to_us": min(self.end, FAR_S // 10**6) * 10**6,
            "user": self.user,
            "policy": self.policy,
            "limit": self.limit,
            "accounts": account_rows(self.accounts),
            "reader": self.reader,
        }


class VerdictStore(Part):
    """The verdicts of a hub's store; threads share it as they share the store."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HubStore), parts.get(HostPorts).clock)

    def add(self, verdicts: Sequence[Verdict], node: str, told: Sequence[StoredEvent] = ()) -> list[str]:
        """Store the verdicts that the advisor on `node` sent, each id once, and their events.

        Returns the actions of the new ones.
        """
        if not verdicts:
            return []
        with self._store.writing() as db:
            return self.put(db, verdicts, node, told, self._clock.utc_us())

    def add_plans(self, user: str, plans: Sequence[Verdict]) -> list[int]:
        """Store a user's plans, one verdict for each job; return the jobs that are recorded now.

        A job is recorded once, and at most PLANS_A_DAY jobs of a user in a day: the rest is left out.
        """
        since_us = self._clock.utc_us() - DAY_S * 1_000_000
        wanted = {plan.run_job_id: plan for plan in plans if plan.run_job_id is not None}
        with self._store.writing() as db:
            known = {"user": user, "since_us": since_us, "cluster": plans[0].cluster, "jobs": sorted(wanted)}
            found = db.rows("verdicts_planned", known)
            there = {row["run_job_id"] for row in found if row["named"]}
            fresh = [plan for job, plan in wanted.items() if job not in there]
            taken = fresh[: max(0, PLANS_A_DAY - len(found))]
            if taken:
                self.put(db, taken, "", (), self._clock.utc_us())
        return [plan.run_job_id for plan in taken if plan.run_job_id is not None]

    def put(
        self, db: Database, verdicts: Sequence[Verdict], node: str, told: Sequence[StoredEvent], taken_us: int
    ) -> list[str]:
        """Store verdicts that arrived at `taken_us`, as `add` does, in a transaction of the store's `writing`."""
        now = taken_us // 1_000_000
        rows = {v.id: {**VERDICT_COLUMNS.row(v), "node": node, "taken_utc": now} for v in verdicts}
        values = {"rows": to_json(rows.values()), "shape": VERDICT_COLUMNS.shape, "lo": min(rows), "hi": max(rows)}
        actions = [str(action) for (action,) in db.run("verdicts_add", values).fetchall()]
        if actions and told:
            append_told(db, told, now)
        return actions

    def counts(self) -> dict[tuple[str, bool], int]:
        """Return how many verdicts are stored, by action and by whether a run with their token was found."""
        with self._store.reader() as db:
            return {(r["action"], r["joined"]): int(r["verdicts"]) for r in db.rows("verdicts_counts")}

    def told(self, ids: Collection[str], cluster: str, jobs: Collection[int]) -> list[dict[str, Any]]:
        """Return verdicts of these ids, and of modifications of these jobs, the oldest first."""
        values = {"ids": sorted(ids), "cluster": cluster, "jobs": sorted(jobs)}
        with self._store.reader() as db:
            return db.rows("verdicts_told", values)

    def judged(self, pick: Pick) -> list[dict[str, Any]]:
        """Return the picked verdicts, the newest first, each with its runs and its state."""
        with self._picked("verdicts_pick", pick.parameters(), self._store.under_use) as db:
            return db.rows("verdicts_rows")

    def score(self, since: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], UnderUse]:
        """Return the rows of the queries verdicts_weeks and verdicts_bins, of all since a UTC second, and the rule."""
        under_use = self._store.under_use
        with self._picked("verdicts_since", {"from_us": Pick(start=since).parameters()["from_us"]}, under_use) as db:
            return db.rows("verdicts_weeks"), db.rows("verdicts_bins"), under_use

    def pairs(self, model_hash: str, beside: str, since: int) -> list[dict[str, Any]]:
        """Return the rows of the query verdicts_pairs since a UTC second: predictions of two bundles, and outcomes."""
        pick = {
            "model": model_hash,
            "beside": beside,
            "from_us": Pick(start=since).parameters()["from_us"],
            "limit": MAX_PAIRS,
        }
        with self._picked("verdicts_beside", pick, self._store.under_use) as db:
            return db.rows("verdicts_pairs", {"beside": beside})

    def failed_scripts(self, cluster: str) -> Iterator[tuple[str, str, int, str]]:
        """Yield user, job name, job id and script hash of each failed run whose script is known."""
        with self._store.reader() as db:
            for row in db.batches("failed_scripts", {"cluster": cluster}):
                yield row["user"], row["name"], row["job_id"], row["script"]

    @contextmanager
    def _picked(self, query: str, parameters: Mapping[str, Any], under_use: UnderUse) -> Iterator[Database]:
        """Yield a cursor with the scratch tables of a pick, judged by a rule of under-use."""
        with self._store.reader() as db:
            db.run(query, parameters)
            try:
                db.run("verdicts_runs", {"from_hour": 0, "to_hour": FAR_S, **under_use.parameters()})
                db.run("verdicts_targets", {"ends": _ENDS, "hit_share": HIT_SHARE})
                young_us = self._clock.utc_us() - YOUNG_S * 1_000_000
                db.run("verdicts_judged", {"young_us": young_us, "slack_s": SLACK_S})
                yield db
            finally:
                db.run("verdicts_drop")


def verdict_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of table verdicts in the form of a sent verdict."""
    return {**row, "quantiles": json.loads(row["quantiles"]), "shadow": json.loads(row["shadow"])}


class VerdictCounts(Part):
    """Call `step` from one thread; any thread may read `counts`."""

    def __init__(self, store: VerdictStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next_us = 0
        self.counts: dict[tuple[str, bool], int] = {}  # by action and by whether a run with the token was found

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        part = cls(parts.get(VerdictStore), parts.get(HostPorts).clock)
        parts.get(Bus).subscribe(Imported, lambda _: part.step())
        return part

    def metrics(self) -> Iterator[Metric]:
        """Yield how many verdicts are stored."""
        return kept_families(self.counts)

    def step(self) -> None:
        """Count if a count is due. Raises StoreError."""
        if self._clock.mono_us() < self._next_us:
            return
        self.counts = self._store.counts()
        self._next_us = self._clock.mono_us() + int(COUNT_EVERY_S * 1e6)


def kept_families(counts: Mapping[tuple[str, bool], int]) -> Iterator[Metric]:
    """Yield the metric of stored verdicts."""
    kept = GaugeMetricFamily(
        "gpuwaste_hub_kept_verdicts",
        "Verdicts in the store, by action and by whether a run with their token was found.",
        labels=["action", "joined"],
    )
    for (action, joined), count in sorted(counts.items()):
        kept.add_metric([action, "true" if joined else "false"], count)
    yield kept

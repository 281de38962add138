"""Disputes: the owner of a job states that its judgement is wrong, and the hub stores the statement."""

from collections.abc import Collection, Iterable
from typing import Any, Final, Self
from urllib.parse import parse_qs

from gpuwaste.core.clock import Clock
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, Refusal, not_found
from gpuwaste.core.scope import Scope
from gpuwaste.core.text import storable
from gpuwaste.core.typed import convert
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.run_store import runs_named
from gpuwaste.ledger.reports.document_queries import PRINTED_ID
from gpuwaste.ledger.reports.job_types import Dispute
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

MAX_WORDS: Final = 500
_MAX_RUNS: Final = 1000  # of one job: the newest
_NEWEST: Final = 50
_FIELDS: Final = 4


class DisputeStore:
    """The disputes in a hub's store; as thread-safe as the store."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def own_runs(self, printed_id: str, user: str) -> list[JobRecord]:
        """Return the runs of a job that are this user's."""
        return runs_named(self._store, printed_id, accounts=(), reader=user)

    def add(self, runs: Collection[JobRecord], user: str, words: str) -> None:
        """Store the statement of `user` on runs; it replaces earlier statements on them."""
        now = self._clock.utc_s()
        said = {"user": user, "at_utc": now, "words": storable(words)}
        rows = [{**_key(run.run_key), "printed_id": run.printed_id, **said} for run in runs]
        if rows:
            with self._store.writing() as db:
                db.run("disputes_add", {"rows": to_json(rows)})

    def of(self, runs: Collection[RunKey]) -> list[dict[str, Any]]:
        """Return the statements on runs, the oldest first."""
        with self._store.reader() as db:
            return db.rows("disputes_of", {"runs": to_json(map(_key, runs))})

    def newest(self, limit: int, user: str | None = None) -> list[dict[str, Any]]:
        """Return the newest statements, of one user or of all."""
        with self._store.reader() as db:
            return db.rows("disputes_newest", {"limit": limit, "user": user})


def _key(run: RunKey) -> dict[str, Any]:
    return {"cluster": run.cluster, "job_id": run.job_id, "run_start": run.start}


class Disputes(Part):
    """Stores owners' statements, and shows them to users who may see the job."""

    def __init__(self, store: DisputeStore) -> None:
        self._store = store

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(DisputeStore(parts.get(HubStore), parts.get(HostPorts).clock))

    def say(self, scope: Scope, printed_id: str, body: bytes) -> None:
        """Store what the form on a job's page sends. Raises Refusal: 404 where the job is not the caller's own."""
        words = _words(body)
        if not scope.user or not PRINTED_ID.fullmatch(printed_id):
            raise not_found()
        runs = [run for run in self._store.own_runs(printed_id, scope.user) if run.start is not None]
        if not runs:
            raise not_found()
        newest = sorted(runs, key=lambda run: run.start or 0)[-_MAX_RUNS:]
        self._store.add(newest, scope.user, words)

    def of(self, runs: Iterable[RunKey]) -> list[Dispute]:
        """Return the statements on runs that the caller may see."""
        return convert(self._store.of(list(runs)), list[Dispute])

    def newest(self, limit: int = _NEWEST, user: str | None = None) -> list[Dispute]:
        """Return the newest statements, of one user or of all."""
        return convert(self._store.newest(limit, user), list[Dispute])


def _words(body: bytes) -> str:
    try:
        fields = parse_qs(body.decode("utf-8"), max_num_fields=_FIELDS)
    except ValueError as error:
        raise Refusal(BAD, "the form cannot be read: reload the page and send it again") from error
    words = " ".join(fields.get("words", [""])[0].split())
    if not words:
        raise Refusal(BAD, "words: say in a sentence what is wrong")
    if len(words) > MAX_WORDS:
        raise Refusal(BAD, f"words: longer than {MAX_WORDS} characters")
    return words

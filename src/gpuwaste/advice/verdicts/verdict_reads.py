"""Who may read which verdicts: operators all, users what was printed for them, nobody else what shadow mode hid.

Blocks on the store: call it off the event loop.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Self

from msgspec import json
from msgspec.structs import replace

from gpuwaste.advice.rescore_store import Rescore, RescoreStore
from gpuwaste.advice.verdicts.verdict_score import ScoreDocument, score_document
from gpuwaste.advice.verdicts.verdict_store import Pick, VerdictStore, verdict_json
from gpuwaste.advice.verdicts.verdict_types import (
    FOR_USERS,
    MAX_VERDICTS,
    VerdictQuestion,
    VerdictRow,
    VerdictsDocument,
    expected_of,
)
from gpuwaste.core.clock import Clock
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, FORBIDDEN, Refusal, not_found
from gpuwaste.core.response_cache import RequestCoalescer, ResponseCache
from gpuwaste.core.scope import Scope
from gpuwaste.core.typed import convert, decode
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.verdict import END, START
from gpuwaste.ledger.reports.job_types import Advice, SaidAgain
from gpuwaste.ledger.run_advice import RunAdvice
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore

SAID: Final = frozenset({"annotate", "warn", "reject"})  # shown to the user; a pass prints nothing
_LIST_DAYS: Final = 7
_SCORE_DAYS: Final = 30
_SCORE_KEPT_S: Final = 60.0
_NOT_FOR_USERS: Final = "the score of verdicts is for operators"


class VerdictReads(Part):
    """Builds the documents within a caller's scope."""

    def __init__(self, store: VerdictStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._scores = ResponseCache(clock)
        self._asked = RequestCoalescer[str, VerdictsDocument]()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(VerdictStore), parts.get(HostPorts).clock)

    def recent(self, scope: Scope, form: str) -> VerdictsDocument:
        """Return the verdicts of the last days as `listed` does: simultaneous calls in one form get one document."""
        found = self._asked.ask(scope, form, lambda _: {form: self.listed(scope, VerdictQuestion())})
        return self.listed(scope, VerdictQuestion()) if found is None else found

    def listed(self, scope: Scope, question: VerdictQuestion) -> VerdictsDocument:
        """Return verdicts, the newest first. Raises Refusal: 404 for another user's, as if they did not exist."""
        now = self._clock.utc_s()
        end = now + 1 if question.end is None else question.end
        start = end - _LIST_DAYS * DAY_S if question.start is None else question.start
        if start > end:
            raise Refusal(BAD, f"start {start} is after end {end}")
        other = question.user is not None and question.user != scope.user
        if not scope.everything and (not scope.user or (other and not scope.accounts)):
            raise not_found()
        user = scope.user if question.user is None and not (scope.everything or scope.accounts) else question.user
        # Users cannot filter by policy: its name and its hidden advice are not for users.
        policy = question.policy if scope.everything else None
        accounts = None if scope.everything else scope.accounts
        pick = Pick(
            start=start, end=end, user=user, policy=policy, limit=min(question.limit, MAX_VERDICTS), accounts=accounts,
            reader=scope.user,
        )  # fmt: skip
        rows = [verdict_json(row) for row in self._store.judged(pick)]
        shown = rows if scope.everything else [{name: row[name] for name in FOR_USERS} for row in rows]
        return VerdictsDocument(generated=now, start=start, end=end, verdicts=convert(shown, list[VerdictRow]))

    def score(self, scope: Scope, since: int | None) -> ScoreDocument:
        """Return the score of the verdicts since a UTC second. Raises Refusal 403 for ordinary users."""
        if not (scope.everything or scope.agent):
            raise Refusal(FORBIDDEN, _NOT_FOR_USERS)
        now = self._clock.utc_s()
        start = now - _SCORE_DAYS * DAY_S if since is None else since
        return score_document(*self._store.score(start), since=start, now=now)

    def recent_score(self, scope: Scope) -> ScoreDocument:
        """Return the score of the last days, which may be a minute old. Raises Refusal 403 for ordinary users."""
        if not scope.everything:
            raise Refusal(FORBIDDEN, _NOT_FOR_USERS)
        kept = self._scores.made("recent", _SCORE_KEPT_S, lambda: json.encode(self.score(scope, None)))
        return decode(kept, ScoreDocument)

    def advice(self, scope: Scope, runs: Sequence[JobRecord]) -> list[Advice]:
        """Return the advice at a job's submission and modifications, the oldest first.

        `runs` are those that the caller may see. Advice that a user did not see is not returned to users; operators get
        it, marked by `said` false.
        """
        users = {run.user for run in runs}
        started = min((run.start for run in runs if run.start is not None), default=None)
        return [
            _with_expected(_advice(row, everything=scope.everything), row, started)
            for row in self._told(runs)
            if scope.everything or (row["user"] in users and row["action"] in SAID)
        ]

    def advice_of(self, scope: Scope, runs: Sequence[JobRecord]) -> list[list[Advice]]:
        """Return for each of the runs what `advice` returns for it, with one query to the store."""
        told = self._told(runs)
        return [
            [
                _advice(row, everything=scope.everything)
                for row in told
                if (row["id"] == run.verdict_id or row["run_job_id"] in {run.job_id, run.array_job_id} - {None})
                and (scope.everything or (row["user"] == run.user and row["action"] in SAID))
            ]
            for run in runs
        ]

    def _told(self, runs: Sequence[JobRecord]) -> list[Mapping[str, Any]]:
        ids = {run.verdict_id for run in runs if run.verdict_id}
        told = {row["id"]: row for cluster, jobs in _jobs(runs).items() for row in self._store.told(ids, cluster, jobs)}
        users = {run.user for run in runs}
        told = {key: row for key, row in told.items() if row["op"] != "plan" or row["user"] in users}
        return sorted(told.values(), key=lambda row: (row["at_utc_us"], row["id"]))


def _jobs(runs: Sequence[JobRecord]) -> dict[str, set[int]]:
    """Return the job ids of the runs by cluster, including an array's own id."""
    found: dict[str, set[int]] = {}
    for run in runs:
        ids = {run.job_id} if run.array_job_id is None else {run.job_id, run.array_job_id}
        found.setdefault(run.cluster, set()).update(ids)
    return found


def _advice(row: Mapping[str, Any], *, everything: bool) -> Advice:
    said = Advice(at=row["at_utc_us"] // 1_000_000, op=row["op"], action=row["action"], lines=row["lines"])
    if row["p"]:
        said = replace(said, p=row["p"])
    if not everything:
        return said
    more = {name: row[name] for name in ("policy", "mode", "would_be", "held")}
    return replace(said, said=row["action"] in SAID, **more)


def _with_expected(said: Advice, row: Mapping[str, Any], started: int | None) -> Advice:
    """Return the advice with the expected start and end, and the actual start."""
    quantiles = decode(row["quantiles"])
    start, end = expected_of(quantiles, START), expected_of(quantiles, END)
    if start is not None:
        said = replace(said, expected_start=start, started=started)
    return said if end is None else replace(said, expected_end=end)


class AdviceOfRuns(RunAdvice):
    """Reads the advice on runs, within a caller's scope."""

    def __init__(self, verdicts: VerdictReads, rescores: RescoreStore) -> None:
        self._verdicts = verdicts
        self._rescores = rescores

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(VerdictReads), RescoreStore(parts.get(HubStore), parts.get(HostPorts).clock))

    def advice(self, scope: Scope, runs: Sequence[JobRecord]) -> list[Advice]:
        """Return the advice at a job's submission and modifications (VerdictReads.advice)."""
        return self._verdicts.advice(scope, runs)

    def advice_of(self, scope: Scope, runs: Sequence[JobRecord]) -> list[list[Advice]]:
        """Return the advice on each of the runs (VerdictReads.advice_of)."""
        return self._verdicts.advice_of(scope, runs)

    def again(self, runs: Collection[RunKey]) -> list[SaidAgain]:
        """Return the predictions of runs while they ran, the oldest first. Raises StoreError."""
        return [_again(said) for said in self._rescores.of(runs)]


def _again(said: Rescore) -> SaidAgain:
    run = said.run
    return SaidAgain(
        cluster=run.cluster, job_id=run.job_id, start=run.start, at=said.at_utc, moment=said.moment, p=said.p,
        limit_p=said.limit_p, limit_at=said.limit_at, usual=said.usual,
    )  # fmt: skip

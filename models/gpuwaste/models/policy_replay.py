"""What policies would have done on a history: each submission judged by what was known at that second.

The history is told event by event to the same follower and predictor that the advisor uses, and before a submission is
told, it is judged. A model is used only for jobs that were submitted after the last one it learnt from; before, the
users' own history is used, as on a site without a model. Users do not react to what they would have read.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from random import Random
from typing import Any, Final

import numpy as np

from gpuwaste.advice.adviser import AdviceRequest, Adviser, suggestions
from gpuwaste.advice.policy.policies_types import PolicyReplayRow
from gpuwaste.advice.policy.policy_case import PolicyOutcome
from gpuwaste.advice.policy.policy_case import Spent as Kind
from gpuwaste.advice.policy.policy_set import PolicySet, needs_of
from gpuwaste.advice.predict.bundle import Bundle
from gpuwaste.advice.predict.corrections import BundleCorrections, corrections_of
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.jobs.history.follow import Follower
from gpuwaste.jobs.history.from_store import TableSnapshot
from gpuwaste.jobs.history.known_at import known_at
from gpuwaste.jobs.history.replay import replay
from gpuwaste.jobs.history.requests import request_of
from gpuwaste.jobs.history.table import JobTable
from gpuwaste.jobs.job_event import HistoryEvent, ScriptSays
from gpuwaste.jobs.verdict import TOLD
from gpuwaste.models.replay_events import ReplayedEvent, events_of
from gpuwaste.models.replay_score import ReplayedSubmission, ReplayScore
from gpuwaste.slurm.site.site_defaults import NO_DEFAULTS, SiteDefaults
from gpuwaste.slurm.submit.request import JobRequest

_CLUSTER: Final = "replay"
_NEVER: Final = 1 << 62
_SILENT_EVERY: Final = 1000  # submissions between two words of progress


@dataclass(frozen=True, slots=True)
class ReplayPeriod:
    """Submissions from `start` up to `end`, UTC seconds; what is not in a history is taken for what stands here."""

    start: int
    end: int
    scripts: ScriptSays = "same"
    site: SiteDefaults = NO_DEFAULTS
    groups_of: Callable[[str], frozenset[str]] = field(default=lambda _: frozenset())


def replay_policies(
    table: JobTable,
    policies: PolicySet,
    question: ReplayPeriod,
    bundle: Bundle | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the figures of the document policy-replay. Raises ModelError."""
    return PolicyReplay(table, policies, question, bundle).run(progress)


class PolicyReplay:
    """A replay from its question's start on."""

    def __init__(self, table: JobTable, policies: PolicySet, question: ReplayPeriod, bundle: Bundle | None) -> None:
        self._table, self._policies, self._question, self._bundle = table, policies, question, bundle
        before = known_at(table, question.start)
        self._follower = Follower(replay(before), _CLUSTER)
        self._follower.boot(TableSnapshot(before, 0))
        state, recall = self._follower.state, self._follower.recall
        self._by_history = Predictor(None, state, None, recall)
        self._model_from = _NEVER if bundle is None else bundle.manifest.window[1]
        self._by_model: Predictor | None = None
        self._spent = ReplaySpending()
        chance = Random(0).random  # noqa: S311 the same draws each time, so that two replays agree
        scripts = question.scripts
        self._adviser = Adviser(
            policies, site=question.site, spending=self._spent, chance=chance, script_of=lambda *_: scripts, told=False
        )
        self._tally = ReplayScore(table)
        self._arrays: dict[tuple[str, str, str, int], ReplayedSubmission] = {}
        self.refused = np.zeros(len(table), dtype=np.bool_)
        """Rows that were refused in this replay, those of an array as the first of its tasks."""
        self._counts = {"submissions": 0, "by_model": 0, "by_history": 0}
        self._seq = 0

    def run(self, progress: Callable[[int], None]) -> dict[str, Any]:
        """Tell every event and return the figures. Raises ModelError."""
        told = 0
        for event in events_of(self._table, self._question.start, self._question.end, _CLUSTER):
            if event.kind == "submitted":
                self._submit(event)
                told += 1
                if told % _SILENT_EVERY == 0:
                    progress(_SILENT_EVERY)
            self._seq += 1
            self._follower.apply(
                [HistoryEvent(self._seq, event.kind, event.job.run_key, event.at, event.job, event.use)]
            )
        progress(told % _SILENT_EVERY)
        return {**self._counts, **self._tally.document()}

    def _submit(self, event: ReplayedEvent) -> None:
        """Judge a submission; the tasks of an array are one."""
        job = event.job
        request = request_of(job)
        key = (job.user, job.name, job.partition, job.submit)
        if request.is_array and key in self._arrays:
            self._arrays[key].rows.append(event.row)
            self.refused[event.row] = self._arrays[key].decision.action == "reject"
            return
        decision, saves = self.decide(request)
        self.refused[event.row] = decision.action == "reject"
        self._counts["submissions"] += 1
        submission = ReplayedSubmission(decision, [event.row], job.user, saves)
        if request.is_array:
            self._arrays = {known: found for known, found in self._arrays.items() if known[3] == job.submit}
            self._arrays[key] = submission
        self._tally.add(submission)
        self._spent.charge(submission, self._tally)

    def decide(self, request: JobRequest) -> tuple[PolicyOutcome, dict[str, float]]:
        """Return the decision, and what each kind of suggestion would save."""
        self._spent.now(request.submit, datetime.fromtimestamp(request.submit).date())  # noqa: DTZ006 the site's own day
        groups = self._question.groups_of(request.user) if self._policies.uses_groups else frozenset[str]()
        predictor = self._predictor(request.submit)
        (advice,) = replace(self._adviser, predictor=predictor).advise([AdviceRequest(request, groups=groups)])
        if needs_of(advice.policy):
            self._counts["by_model" if predictor is self._by_model else "by_history"] += 1
        return advice.decision, {found.kind: found.saves for found in suggestions(advice.outlook.changes)}

    def _predictor(self, at: int) -> Predictor:
        """Return the model's predictor from the end of what it learnt from on, with corrections from there on."""
        if self._bundle is None or at <= self._model_from:
            return self._by_history
        if self._by_model is None:
            rolling = corrections_of(self._bundle)
            self._follower.correct_by(BundleCorrections(self._bundle, rolling), self._bundle.hash)
            self._by_model = Predictor(self._bundle, self._follower.state, rolling, self._follower.recall)
        return self._by_model


def false_reject_ratio(rows: Sequence[PolicyReplayRow]) -> float | None:
    """Return the share of the judged would-be rejects that were wrong, None where none was judged."""
    rejects = [row for row in rows if row.target == "all" and row.would_be == "reject"]
    wrong, judged = sum(r.wrong for r in rejects), sum(r.wrong + r.right for r in rejects)
    return wrong / judged if judged else None


class ReplaySpending:
    """Spending (policy.facts) of a replay."""

    def __init__(self) -> None:
        self._day = date.min
        self._had: Counter[tuple[Kind, str]] = Counter()
        self._open: list[tuple[int, int, str, bool]] = []
        self._judged: Counter[str] = Counter()
        self._right: Counter[str] = Counter()
        self._number = 0

    def now(self, at: int, day: date) -> None:
        """Let time pass: a new day begins, jobs have ended."""
        if day != self._day:
            self._day = day
            self._had.clear()
        while self._open and self._open[0][0] <= at:
            _, _, policy, right = heapq.heappop(self._open)
            self._judged[policy] += 1
            self._right[policy] += right

    def charge(self, submission: ReplayedSubmission, tally: ReplayScore) -> None:
        """Count a reject, and what becomes of what was said."""
        decision = submission.decision
        if decision.action == "reject":
            self._had["reject", submission.user] += 1
        if decision.action in TOLD or decision.sampled:
            found = tally.came_true(submission)
            if found is not None:
                self._number += 1
                heapq.heappush(self._open, (tally.known_at(submission), self._number, decision.policy, found))

    def spent(self, kind: Kind, user: str) -> int:
        """Return how many of a kind the user has had today."""
        return self._had["reject" if kind == "reject" else "override", user]

    def precision(self, policy: str) -> tuple[float, int] | None:
        """Return the precision of what was said and has ended by now."""
        judged = self._judged[policy]
        return (self._right[policy] / judged, judged) if judged else None

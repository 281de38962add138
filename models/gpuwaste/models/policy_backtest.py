"""What policies would have done on a history: each submission judged by what was known at that second, and scored.

The history is replayed event by event to the same follower and predictor that the advisor uses, and each submission
is judged before its event. A model is used only for jobs that were submitted after the last one it learnt from; before,
the users' own history is used, as on a site without a model. Users do not react to the messages. The score is whether
each warning was right, and how many GPU-hours following it would have saved.
"""

import heapq
import math
from collections import Counter, defaultdict
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
from gpuwaste.advice.policy.policy_file import PROBABILITIES, QUANTITIES
from gpuwaste.advice.policy.policy_set import PolicySet, needs_of
from gpuwaste.advice.predict.bundle import Bundle
from gpuwaste.advice.predict.corrections import BundleCorrections, corrections_of
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.advice.predict.targets import labels, request_cap
from gpuwaste.advice.verdicts.hits import HIT_SHARE
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.history.from_store import TableSnapshot
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.job_table import ABSENT, Floats, JobTable, known_at
from gpuwaste.jobs.job_event import HistoryEvent, ScriptSays
from gpuwaste.jobs.verdict import TOLD, Action
from gpuwaste.models.event_replay import ReplayedEvent, events_of
from gpuwaste.slurm.site.site_defaults import NO_DEFAULTS, SiteDefaults
from gpuwaste.slurm.submit.job_request import JobRequest, request_of

ALL: Final = "all"

_COUNTED: Final = ("jobs", "said", "right", "wrong", "unknown")
_CLUSTER: Final = "replay"
_NEVER: Final = 1 << 62
_SILENT_EVERY: Final = 1000  # submissions between two calls of progress


@dataclass(slots=True)
class ReplayedSubmission:
    """One submission with its decision; `rows` are its runs, several of an array; `saves` by kind of suggestion."""

    decision: PolicyOutcome
    rows: list[int]
    user: str
    saves: dict[str, float]


class ReplayScore:
    """Collects submissions; their runs are judged at the end, when arrays are complete."""

    def __init__(self, table: JobTable) -> None:
        self._table = table
        self._labels = {target: labels(target, table) for target in PROBABILITIES}
        self._taken = {target: labels(target, table) for target in QUANTITIES}
        self._judged = (table.gpus > 0) & (table.gpu_coverage >= table.under_use.min_coverage)
        self._found: list[ReplayedSubmission] = []
        self._held: Counter[str] = Counter()

    def add(self, submission: ReplayedSubmission) -> None:
        """Take a submission that would get a message, or whose message was held back."""
        decision = submission.decision
        if decision.held and (decision.would_be != "pass" or decision.held == "exempt"):
            self._held[decision.held] += 1
        if decision.would_be != "pass":
            self._found.append(submission)

    def came_true(self, submission: ReplayedSubmission) -> bool | None:
        """Return whether one of its targets came true, None where that is unknown for all."""
        found = [self._right(submission, target) for target in submission.decision.triggers]
        return True if True in found else False if False in found else None

    def known_at(self, submission: ReplayedSubmission) -> int:
        """Return the UTC second at which the first run's outcome was known."""
        row = submission.rows[0]
        return int(max(self._table.end[row], self._table.ledger_at[row]))

    def document(self) -> dict[str, Any]:
        """Return the rows, and counts of what was held back."""
        sums: defaultdict[tuple[str, str, Action], Counter[str]] = defaultdict(Counter)
        saved_h: defaultdict[tuple[str, str, Action], float] = defaultdict(float)
        users: defaultdict[tuple[str, str, Action], set[str]] = defaultdict(set)
        for submission in self._found:
            decision = submission.decision
            hours = {target: self._gpu_hours(submission, target) for target in decision.triggers}
            for target in (ALL, *decision.triggers):
                right = self.came_true(submission) if target == ALL else self._right(submission, target)
                saved = max(hours.values(), default=0.0) if target == ALL else hours[target]
                key = decision.policy, target, decision.would_be
                outcome = {True: "right", False: "wrong", None: "unknown"}[right]
                sums[key].update(jobs=1, said=decision.action in TOLD, **{outcome: 1})
                saved_h[key] += saved
                users[key].add(submission.user)
        rows = [
            PolicyReplayRow(
                policy=key[0], target=key[1], would_be=key[2], **{name: count[name] for name in _COUNTED},
                gpu_hours=round(saved_h[key], 3), users=len(users[key]),
            )
            for key, count in sorted(sums.items())
        ]  # fmt: skip
        everybody = {submission.user for submission in self._found}
        return {"rows": rows, "held": dict(self._held), "users": len(everybody)}

    def _right(self, submission: ReplayedSubmission, target: str) -> bool | None:
        """Return whether enough of the runs with known outcomes were as predicted (advice/verdicts/hits.py)."""
        values = [self._came_out(submission, target, row) for row in submission.rows]
        known = [value for value in values if not math.isnan(value)]
        return None if not known else sum(known) >= HIT_SHARE * len(known)

    def _came_out(self, submission: ReplayedSubmission, target: str, row: int) -> float:
        """Return 1 where a run's outcome was as predicted, 0 where not, NaN where it is unknown."""
        if target in self._labels:
            return float(self._labels[target][row])
        t = self._table
        if target in QUANTITIES:
            enough = float(request_cap(target, t)[row]) - submission.saves.get(QUANTITIES[target], 0.0)
            known = _known(self._taken[target], row) and t.end[row] != ABSENT
            return float(self._taken[target][row] <= enough) if known else math.nan
        return float(t.gpus_active[row] < t.gpus[row]) if self._judged[row] else math.nan

    def _gpu_hours(self, submission: ReplayedSubmission, target: str) -> float:
        """Return the GPU-hours of the runs with the predicted outcome: of failed jobs all, else those of idle GPUs."""
        if target in QUANTITIES:
            return 0.0
        total, t = 0.0, self._table
        for row in submission.rows:
            if self._came_out(submission, target, row) == 1.0 and _known(t.run_s, row) and t.gpus[row] > 0:
                gpus = t.gpus[row] if target in self._labels else t.gpus[row] - t.gpus_active[row]
                total += float(gpus * t.run_s[row]) / HOUR_S
        return total


def _known(column: Floats, row: int) -> bool:
    return not math.isnan(float(column[row]))


@dataclass(frozen=True, slots=True)
class ReplayPeriod:
    """Submissions from `start` up to `end`, UTC seconds; the other fields replace what a history does not have."""

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
    """A replay from the start of its period on."""

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
        chance = Random(0).random  # noqa: S311 the same draws each time: equal replays
        scripts = question.scripts
        self._adviser = Adviser(
            policies, site=question.site, spending=self._spent, chance=chance, script_of=lambda *_: scripts, told=False
        )
        self._tally = ReplayScore(table)
        self._arrays: dict[tuple[str, str, str, int], ReplayedSubmission] = {}
        self.refused = np.zeros(len(table), dtype=np.bool_)
        """Rows that were rejected in this replay, those of an array by its first task."""
        self._counts = {"submissions": 0, "by_model": 0, "by_history": 0}
        self._seq = 0

    def run(self, progress: Callable[[int], None]) -> dict[str, Any]:
        """Replay every event and return the figures. Raises ModelError."""
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
        """Judge a submission; the tasks of an array are one submission."""
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
        """Return the model's predictor for submissions after its training data, with corrections from there on."""
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
    """Spending of a replay (policy_case.py)."""

    def __init__(self) -> None:
        self._day = date.min
        self._had: Counter[tuple[Kind, str]] = Counter()
        self._open: list[tuple[int, int, str, bool]] = []
        self._judged: Counter[str] = Counter()
        self._right: Counter[str] = Counter()
        self._number = 0

    def now(self, at: int, day: date) -> None:
        """Advance the time: a new day begins, jobs have ended."""
        if day != self._day:
            self._day = day
            self._had.clear()
        while self._open and self._open[0][0] <= at:
            _, _, policy, right = heapq.heappop(self._open)
            self._judged[policy] += 1
            self._right[policy] += right

    def charge(self, submission: ReplayedSubmission, tally: ReplayScore) -> None:
        """Count a reject, and the outcome of each message."""
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
        """Return the precision of the messages whose jobs have ended by now."""
        judged = self._judged[policy]
        return (self._right[policy] / judged, judged) if judged else None

"""What policies would have done on a history: each submission judged by what was known at that second.

The history is told event by event to the same follower and predictor that the advisor uses, and before a submission is
told, it is judged. A model speaks only of jobs that were submitted after the last one it learnt from; before, the
users' own history alone does, as on a site without a model. Nobody behaves otherwise for what he would have read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Final

from gpuwaste.core.history import HistoryEvent
from gpuwaste.core.request import JobRequest
from gpuwaste.history.follow import Follower
from gpuwaste.history.from_store import Snapshot
from gpuwaste.history.replay import replay
from gpuwaste.history.requests import request_of
from gpuwaste.history.table import JobTable
from gpuwaste.models.replay_events import Told, events_of, known_at
from gpuwaste.models.replay_score import Submission, Tally
from gpuwaste.models.replay_spending import Spent
from gpuwaste.policy.declarations import GPUS, QUANTITIES
from gpuwaste.policy.facts import Decision, Facts, ScriptSays
from gpuwaste.policy.policy_set import PolicySet, needs_of
from gpuwaste.predict.beside import corrections_of
from gpuwaste.predict.bundle import Bundle
from gpuwaste.predict.corrections import BundleCorrections
from gpuwaste.predict.expectation import expectations, suggestions
from gpuwaste.predict.predictor import Predictor

_CLUSTER: Final = "replay"
_NEVER: Final = 1 << 62
_SILENT_EVERY: Final = 1000  # submissions between two words of progress
_KINDS: Final = {GPUS: GPUS, **QUANTITIES}


@dataclass(frozen=True, slots=True)
class Question:
    """Submissions from `start` up to `end`, UTC seconds; what is not in a history is taken for what stands here."""

    start: int
    end: int
    scripts: ScriptSays = "same"
    whole_partitions: frozenset[str] = frozenset()
    groups_of: Callable[[str], frozenset[str]] = field(default=lambda _: frozenset())


def replay_policies(
    table: JobTable,
    policies: PolicySet,
    question: Question,
    bundle: Bundle | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the figures of the document policy-replay. Raises ModelError."""
    return _Replay(table, policies, question, bundle).run(progress)


class _Replay:
    def __init__(self, table: JobTable, policies: PolicySet, question: Question, bundle: Bundle | None) -> None:
        self._table, self._policies, self._question, self._bundle = table, policies, question, bundle
        before = known_at(table, question.start)
        self._follower = Follower(replay(before), _CLUSTER)
        self._follower.boot(Snapshot(before, 0))
        state, recall = self._follower.state, self._follower.recall
        self._by_history = Predictor(None, state, None, recall)
        self._model_from = _NEVER if bundle is None else bundle.manifest.window[1]
        self._by_model: Predictor | None = None
        self._spent = Spent()
        self._tally = Tally(table)
        self._arrays: dict[tuple[str, str, str, int], Submission] = {}
        self._chance = Random(0).random  # noqa: S311 the same draws each time, so that two replays agree
        self._counts = {"submissions": 0, "by_model": 0, "by_history": 0}
        self._seq = 0

    def run(self, progress: Callable[[int], None]) -> dict[str, Any]:
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

    def _submit(self, event: Told) -> None:
        """Judge a submission; the tasks of an array are one."""
        job = event.job
        request = request_of(job)
        key = (job.user, job.name, job.partition, job.submit)
        if request.is_array and key in self._arrays:
            self._arrays[key].rows.append(event.row)
            return
        decision, saves = self._decide(request)
        self._counts["submissions"] += 1
        submission = Submission(decision, [event.row], job.user, saves)
        if request.is_array:
            self._arrays = {known: found for known, found in self._arrays.items() if known[3] == job.submit}
            self._arrays[key] = submission
        self._tally.add(submission)
        self._spent.charge(submission, self._tally)

    def _decide(self, request: JobRequest) -> tuple[Decision, dict[str, float]]:
        """Return the decision, and what each kind of suggestion would save."""
        at = datetime.fromtimestamp(request.submit)  # noqa: DTZ006 policies speak of the site's own time
        self._spent.now(request.submit, at.date())
        groups = self._question.groups_of(request.user) if self._policies.uses_groups else frozenset[str]()
        whole = not self._question.whole_partitions.isdisjoint(request.partition.split(","))
        facts = Facts(request, at, groups=groups, whole_node=whole, script=self._question.scripts)
        policy = self._policies.select(facts)
        needs = needs_of(policy)
        if not needs:
            return self._policies.decide(facts, self._spent, self._chance), {}
        predictor = self._predictor(request.submit)
        said = predictor.scored(request, predictor.vector(request), needs)
        kinds = {_KINDS[target] for target in policy.targets if target in _KINDS}
        smaller = suggestions(predictor.changes(request, said, kinds)) if kinds else ()
        full = Facts(
            request, at, groups=groups, whole_node=whole, script=self._question.scripts,
            expected=expectations(said), suggestions=smaller,
        )  # fmt: skip
        return self._policies.decide(full, self._spent, self._chance), {found.kind: found.saves for found in smaller}

    def _predictor(self, at: int) -> Predictor:
        """Return the model's predictor from the end of what it learnt from on, with corrections from there on."""
        if self._bundle is None or at <= self._model_from:
            self._counts["by_history"] += 1
            return self._by_history
        self._counts["by_model"] += 1
        if self._by_model is None:
            rolling = corrections_of(self._bundle)
            self._follower.correct_by(BundleCorrections(self._bundle, rolling), self._bundle.hash)
            self._by_model = Predictor(self._bundle, self._follower.state, rolling, self._follower.recall)
        return self._by_model


def false_reject_ratio(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return the share of the judged would-be rejects that were wrong, None where none was judged."""
    rejects = [row for row in rows if row["target"] == "all" and row["would_be"] == "reject"]
    wrong, judged = sum(r["wrong"] for r in rejects), sum(r["wrong"] + r["right"] for r in rejects)
    return wrong / judged if judged else None

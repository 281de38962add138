"""From a request to a verdict: the vector, what models or history say, the policy's decision.

Most submissions reach no threshold. So the targets that the policy uses are scored without reasons first; reasons and
the user's own numbers are worked out, and the policy asked again, only where something would be said.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gpuwaste.advisor.spending import Accounts
from gpuwaste.core.clock import Clock
from gpuwaste.core.request import JobRequest
from gpuwaste.core.verdict import Expectation, Op, Suggestion, Verdict, new_id
from gpuwaste.history.recall import Recall
from gpuwaste.policy.declarations import GPUS, QUANTITIES, Policy
from gpuwaste.policy.facts import Decision, Facts, ScriptSays
from gpuwaste.policy.policy_set import PolicySet, needs_of
from gpuwaste.policy.spending import no_chance
from gpuwaste.predict.expectation import expectations, suggestions
from gpuwaste.predict.features import feature_hash
from gpuwaste.predict.own import own_sentences
from gpuwaste.predict.prediction import TargetPrediction
from gpuwaste.predict.predictor import Predictor, Vector
from gpuwaste.predict.vectors import KeyHistories, vectors_of
from gpuwaste.slurm.job_desc import JobDesc

_GPU_TARGETS: Final = frozenset({"gpu_underused", "gpus_needed"})
_REASONS: Final = 8  # sentences kept in a verdict's row
_ROW_TEXT: Final = 1024  # characters of a text in a verdict's row


@dataclass(slots=True)
class Knowledge:
    """What answers rest on; each part is replaced as a whole, on the loop's thread."""

    predictor: Predictor
    state: KeyHistories
    recall: Recall
    policies: PolicySet
    model_hash: str = ""
    whole_partitions: frozenset[str] = frozenset()
    default_partition: str = ""


@dataclass(frozen=True, slots=True)
class Submission:
    """One request with what it does not say itself."""

    desc: JobDesc
    op: Op
    request: JobRequest
    groups: frozenset[str]
    stale: bool
    at_utc_us: int
    arrived_us: int  # steady clock
    unread: bool = False  # its texts take too much CPU: it is not scored


@dataclass(frozen=True, slots=True)
class _Wants:
    """What one policy's decision rests on."""

    targets: frozenset[str]
    kinds: frozenset[str]  # suggestions, by the files of predict/changes


class Judge:
    """Judges submissions, on the loop's thread."""

    def __init__(self, cluster: str, knowledge: Knowledge, accounts: Accounts, clock: Clock) -> None:
        self.knowledge = knowledge
        self._cluster = cluster
        self._accounts = accounts
        self._clock = clock
        self._chance: Callable[[], float] = random.Random().random  # noqa: S311 draws a sample, keeps no secret
        self._wants: dict[str, _Wants] = {}
        self._wants_of = knowledge.policies
        self._features = feature_hash()
        self._second = 0
        self._local = datetime.min  # noqa: DTZ901 replaced at the first submission

    def judge(self, submissions: Sequence[Submission]) -> list[tuple[Verdict, Decision]]:
        """Return verdict and decision of each; what they have in common is done once for all. Raises ModelError."""
        known = self.knowledge
        self._tell_time(submissions[0].at_utc_us // 1_000_000)
        bare = [self._facts(submission) for submission in submissions]
        policies = [known.policies.select(facts) for facts in bare]
        wants = [self._wants_for(policy) for policy in policies]
        scored = [n for n, wanted in enumerate(wants) if wanted.targets and not submissions[n].unread]
        raw: dict[str, Vector] = {}
        if scored:
            vectors = vectors_of(known.state, [submissions[place].request for place in scored])
            raw = known.predictor.raws(vectors, frozenset[str]().union(*(wants[place].targets for place in scored)))
        rows = {place: row for row, place in enumerate(scored)}
        found = []
        for place, submission in enumerate(submissions):
            row = rows.get(place)
            if row is None:
                decision = known.policies.decide_by(policies[place], bare[place], self._accounts, self._chance)
                found.append(self._row(submission, decision, ()))
            else:
                outputs = {target: values[row] for target, values in raw.items()}
                found.append(self._decided(submission, policies[place], vectors[row], outputs))
        return found

    def _decided(
        self, submission: Submission, policy: Policy, vector: Vector, raw: dict[str, Vector]
    ) -> tuple[Verdict, Decision]:
        known, request, wants = self.knowledge, submission.request, self._wants_for(policy)
        said = known.predictor.scored(request, vector, wants.targets, raw)
        proposed = known.predictor.changes(request, said, wants.kinds) if wants.kinds else ()
        facts = self._facts(submission, expectations(said), suggestions(proposed))
        decision = known.policies.decide_by(policy, facts, self._accounts, no_chance)
        if decision.would_be != "pass":
            triggers = set(decision.triggers)
            only = triggers | _GPU_TARGETS if GPUS in triggers else triggers
            told = known.predictor.explained(request, vector, said, only)
            expected = expectations(told, own_sentences(known.recall, request))
            script = known.recall.script_says(request.user, request.name, submission.desc.script_hash)
            facts = self._facts(submission, expected, suggestions(proposed), script)
            decision = known.policies.decide_by(policy, facts, self._accounts, self._chance)
        if not submission.desc.test_only:
            self._accounts.charge(request.user, decision)
        return self._row(submission, decision, said)

    def _facts(
        self,
        submission: Submission,
        expected: tuple[Expectation, ...] = (),
        proposed: tuple[Suggestion, ...] = (),
        script: ScriptSays = "unknown",
    ) -> Facts:
        desc, request = submission.desc, submission.request
        return Facts(
            request,
            self._local,
            submission.op,
            submission.groups,
            self._whole_node(submission),
            desc.comment,
            script,
            submission.stale,
            desc.test_only,
            expected,
            proposed,
            submission.unread,
        )

    def _whole_node(self, submission: Submission) -> bool:
        known, asked = self.knowledge, submission.request.partition
        if submission.desc.whole_node or not known.whole_partitions:
            return submission.desc.whole_node
        return not known.whole_partitions.isdisjoint((asked or known.default_partition).split(","))

    def _wants_for(self, policy: Policy) -> _Wants:
        if self._wants_of is not self.knowledge.policies:
            self._wants_of = self.knowledge.policies
            self._wants.clear()
        wants = self._wants.get(policy.name)
        if wants is None:
            kinds = {QUANTITIES.get(target, target) for target in policy.targets if target in {*QUANTITIES, GPUS}}
            wants = self._wants[policy.name] = _Wants(needs_of(policy), frozenset(kinds))
        return wants

    def _tell_time(self, now_s: int) -> None:
        if now_s != self._second:
            self._second = now_s
            self._local = datetime(*time.localtime(now_s)[:6])  # noqa: DTZ001 the site's own time, as policies say it
            self._accounts.today(now_s)

    def _row(
        self, submission: Submission, decision: Decision, said: tuple[TargetPrediction, ...]
    ) -> tuple[Verdict, Decision]:
        desc, request = submission.desc, submission.request
        verdict = Verdict(
            id=new_id(submission.at_utc_us),
            cluster=self._cluster,
            at_utc_us=submission.at_utc_us,
            op=submission.op,
            policy=decision.policy,
            mode=decision.mode,
            action=decision.action,
            would_be=decision.would_be,
            held=decision.held,
            sampled=decision.sampled,
            override=decision.override,
            triggers=decision.triggers,
            user=request.user[:_ROW_TEXT],
            account=request.account[:_ROW_TEXT],
            partition=request.partition[:_ROW_TEXT],
            qos=request.qos[:_ROW_TEXT],
            name=request.name[:_ROW_TEXT],
            is_array=request.is_array,
            het_offset=desc.het_offset,
            run_job_id=desc.job_id,
            gpus=request.gpus,
            time_limit_s=request.time_limit_s,
            p={target.target: target.p for target in said if target.p is not None},
            quantiles={target.target: target.quantiles for target in said if target.quantiles},
            reasons=decision.reasons[:_REASONS],
            lines=decision.lines,
            script=desc.script_hash,
            model_hash=self.knowledge.model_hash,
            feature_hash=self._features,
            latency_us=self._clock.mono_us() - submission.arrived_us,
        )
        return verdict, decision

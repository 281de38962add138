"""Adviser: from a request to a decision: the site's defaults, what models or history predict, the policy's rules.

Most submissions reach no threshold. So `advise` first scores the targets that the policy uses, without reasons. Only
where something is printed does it compute smaller requests, reasons and the user's own numbers, and decide again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gpuwaste.advice.hold_out import HoldOut
from gpuwaste.advice.policy.expected_waits import WaitTable
from gpuwaste.advice.policy.policy_case import (
    Expectation,
    PolicyOutcome,
    Spending,
    Spent,
    SubmissionFacts,
    SubmittedRequest,
    Suggestion,
)
from gpuwaste.advice.policy.policy_file import GPUS, QUANTITIES, Policy
from gpuwaste.advice.policy.policy_set import PolicySet, needs_of
from gpuwaste.advice.policy.size_table import SizeTable
from gpuwaste.advice.predict.prediction_types import RequestChange, TargetPrediction
from gpuwaste.jobs.job_event import ScriptSays
from gpuwaste.slurm.site.site_defaults import NO_DEFAULTS, SiteDefaults
from gpuwaste.slurm.submit.job_request import JobRequest

if TYPE_CHECKING:
    from gpuwaste.advice.predict.prediction_types import PredictDocument, Scored
    from gpuwaste.advice.predict.predictor import Predictor, Vector

_LAST: Final = 253_370_764_800  # UTC seconds; a request's submit time may be in a year that no date can hold
_GPU_TARGETS: Final = frozenset({"gpu_underused", "gpus_needed"})


@dataclass(slots=True)
class Outlook:
    """What is expected of a request: targets, smaller requests, sentences of the user's own runs by target, script.

    `last_job` is the id of the user's last ended job of this name.
    """

    targets: Sequence[TargetPrediction] = ()
    changes: Sequence[RequestChange] = ()
    own: Mapping[str, Sequence[str]] = field(default_factory=dict)
    script: ScriptSays = "unknown"
    last_job: int | None = None


_NOTHING: Final = Outlook()
_KINDS: Final = {"gpus": "gpus", "mem_b": "memory", "time_limit_s": "time_limit"}  # amount -> file of predict/changes
# Features whose sentence repeats, less exactly, what a sentence about the user's own runs counts.
_COUNTED: Final = {
    "failure": ("name_failed", "name_fail_"),
    "failure_or_cancel": ("name_failed", "name_fail_"),
    "gpus_needed": ("name_gpu_",),
    "gpu_underused": ("name_gpu_",),
}


@dataclass(slots=True, kw_only=True)
class AdviceRequest(SubmittedRequest):
    """One submission to advise on; the adviser fills in the site's defaults.

    `script` is the hash of the entire batch script, "" where there is none.
    """

    script: str = ""


@dataclass(slots=True)
class SubmitAdvice:
    """A decision, the request with the site's defaults, the policy that decided, and what the decision is based on.

    `prediction` is set where the full prediction was requested; else `outlook` has the targets that the policy uses,
    and `vector` the features that they were scored by, None where nothing was scored.
    """

    request: JobRequest
    policy: Policy
    decision: PolicyOutcome
    outlook: Outlook
    prediction: "PredictDocument | None" = None
    vector: "Vector | None" = None


@dataclass(frozen=True, slots=True)
class _Wants:
    """What one policy's decision is based on."""

    targets: frozenset[str]
    kinds: frozenset[str]  # suggestions, by the files of predict/changes
    assumed: tuple[Suggestion, ...]  # one of each kind


class NothingSpent:
    """The counts of a user who has had no reject today."""

    def spent(self, kind: Spent, user: str) -> int:  # noqa: ARG002 the protocol's
        """Return 0."""
        return 0

    def precision(self, policy: str) -> tuple[float, int] | None:  # noqa: ARG002 the protocol's
        """Return None: not known."""
        return None


def _no_chance() -> float:
    """Return the highest number: no would-be reject passes at random."""
    return 1.0


@dataclass(frozen=True)
class Adviser:
    """Decides by policies; use from one thread at a time. To change a part, copy with dataclasses.replace.

    `spending` and `chance` are for callers whose decisions take effect: by default nothing is spent and nothing is
    random. `script_of` replaces the predictor's recall. With `told` False reasons are left out because nobody reads
    them. `waits` are the waits that the hub expects; without them there is no expected start. `hold_out` are the
    campaigns: by default everybody gets all advice.
    """

    policies: PolicySet
    predictor: "Predictor | None" = None
    site: SiteDefaults = NO_DEFAULTS
    spending: Spending = field(default_factory=NothingSpent)
    chance: Callable[[], float] = _no_chance
    script_of: Callable[[JobRequest, str], ScriptSays] | None = None
    told: bool = True
    waits: WaitTable | None = None
    sizes: SizeTable | None = None
    hold_out: HoldOut = field(default_factory=HoldOut)
    _wanted: dict[str, _Wants] = field(default_factory=dict, init=False, repr=False)

    def advise(self, asked: Sequence[AdviceRequest]) -> Iterator[SubmitAdvice]:
        """Yield the advice on each submission; shared work is done once. Raises ModelError.

        Each submission is decided when its advice is taken: charge what the decision spends before taking the next one.
        """
        asked = [self.completed(one) for one in asked]
        facts = [_facts(one) for one in asked]
        policies = [self.policies.select(one) for one in facts]
        wants = [self._wants(policy) for policy in policies]
        scored = [n for n, wanted in enumerate(wants) if wanted.targets and not asked[n].unread]
        raw: dict[str, Vector] = {}
        if scored:
            assert self.predictor is not None  # noqa: S101 narrows the type: who asks for scores has one
            vectors = self.predictor.vectors([asked[place].request for place in scored])
            raw = self.predictor.raws(vectors, {target for place in scored for target in wants[place].targets})
        rows = {place: row for row, place in enumerate(scored)}
        for place, (one, policy) in enumerate(zip(asked, policies, strict=True)):
            row = rows.get(place)
            if row is None:
                yield self._decided(facts[place], policy, _NOTHING, self.chance)
            else:
                outputs = {target: values[row] for target, values in raw.items()}
                advice = self._by_need(one, facts[place], policy, vectors[row], outputs)
                advice.vector = vectors[row]
                yield advice

    def everything(self, asked: AdviceRequest) -> SubmitAdvice:
        """Return the advice on one submission with the full prediction. Raises ModelError."""
        assert self.predictor is not None  # noqa: S101 narrows the type
        asked, predictor = self.completed(asked), self.predictor
        found = predictor.predict(asked.request)
        last_job = predictor.last_job(asked.request)
        outlook = Outlook(found.targets, found.changes, predictor.own(asked.request), self._script(asked), last_job)
        return replace(self.decide(asked, outlook), prediction=found)

    def scored(self, asked: Sequence[AdviceRequest]) -> "list[Scored]":
        """Return the predictions for many submissions, without reasons and decisions. Raises ModelError."""
        assert self.predictor is not None  # noqa: S101 narrows the type
        return self.predictor.scored_all([self.completed(one).request for one in asked])

    def decide(self, asked: AdviceRequest, outlook: Outlook) -> SubmitAdvice:
        """Return the advice on a submission whose predictions (`outlook`) are already known."""
        facts = _facts(self.completed(asked))
        return self._decided(facts, self.policies.select(facts), outlook, self.chance)

    def completed(self, asked: AdviceRequest) -> AdviceRequest:
        """Return the submission with the site's defaults."""
        request = self.site.completed(asked.request)
        return asked if request is asked.request else replace(asked, request=request)

    def _by_need(
        self, asked: AdviceRequest, facts: SubmissionFacts, policy: Policy, vector: "Vector", raw: "dict[str, Vector]"
    ) -> SubmitAdvice:
        assert self.predictor is not None  # noqa: S101 narrows the type: it has scored
        predictor, request, wants = self.predictor, asked.request, self._wants(policy)
        outlook = Outlook(predictor.scored(request, vector, wants.targets, raw))
        # A smaller request costs as much as the job itself: it is computed only where one could make a difference.
        found = self._decided(facts, policy, outlook, _no_chance, wants.assumed)
        kinds = {QUANTITIES.get(target, target) for target in found.decision.triggers} & wants.kinds
        if kinds:
            outlook = replace(outlook, changes=predictor.changes(request, outlook.targets, kinds))
            found = self._decided(facts, policy, outlook, _no_chance)
        if found.decision.would_be == "pass":
            return found
        outlook = replace(outlook, script=self._script(asked))
        if self.told:
            triggers = set(found.decision.triggers)
            only = triggers | _GPU_TARGETS if GPUS in triggers else triggers
            explained = predictor.explained(request, vector, outlook.targets, only)
            own, last_job = predictor.own(request), predictor.last_job(request)
            outlook = replace(outlook, targets=explained, own=own, last_job=last_job)
        return self._decided(facts, policy, outlook, self.chance)

    def _decided(
        self,
        facts: SubmissionFacts,
        policy: Policy,
        outlook: Outlook,
        chance: Callable[[], float],
        assumed: tuple[Suggestion, ...] = (),
    ) -> SubmitAdvice:
        """Decide by the facts of a submission and the current predictions."""
        facts.script, facts.expected = outlook.script, expectations(outlook.targets, outlook.own)
        facts.waits, facts.sizes, facts.last_job = self.waits, self.sizes, outlook.last_job
        facts.suggestions = assumed or suggestions(outlook.changes)
        request = facts.request
        facts.campaign = self.hold_out.holding_back(
            "policy", policy.name, request.user, request.account, request.submit
        )
        decision = self.policies.decide_by(policy, facts, self.spending, chance)
        return SubmitAdvice(facts.request, policy, decision, outlook)

    def _script(self, asked: AdviceRequest) -> ScriptSays:
        if self.script_of is not None:
            return self.script_of(asked.request, asked.script)
        return "unknown" if self.predictor is None else self.predictor.script_says(asked.request, asked.script)

    def _wants(self, policy: Policy) -> _Wants:
        wants = self._wanted.get(policy.name)
        if wants is None:
            kinds = {QUANTITIES.get(target, target) for target in policy.targets if target in {*QUANTITIES, GPUS}}
            assumed = tuple(Suggestion(kind, "", "", 0.0) for kind in kinds)
            wants = self._wanted[policy.name] = _Wants(needs_of(policy), frozenset(kinds), assumed)
        return wants


def _facts(asked: AdviceRequest) -> SubmissionFacts:
    """Return the facts of a submission, without predictions."""
    return SubmissionFacts(
        asked.request,
        asked.op,
        asked.groups,
        local_time=_local_time(asked.request.submit),
        stale=asked.stale,
        test_only=asked.test_only,
        unread=asked.unread,
    )


def _local_time(at: int) -> datetime:
    return datetime.fromtimestamp(min(at, _LAST))  # noqa: DTZ006 policies speak of the site's own time


def expectations(
    said: Iterable[TargetPrediction], own: Mapping[str, Sequence[str]] | None = None
) -> tuple[Expectation, ...]:
    """Return the expectation for each target, with the sentences of predict.own before the model's reasons."""
    return tuple(_expectation(target, tuple((own or {}).get(target.target, ()))) for target in said)


def suggestions(changes: Iterable[RequestChange]) -> tuple[Suggestion, ...]:
    """Return the changes with what each saves: GPUs, bytes, or seconds of limit."""
    found = []
    for change in changes:
        for amount, kind in _KINDS.items():
            if amount in change.before and amount in change.after:
                saves = change.before[amount] - change.after[amount]
                found.append(Suggestion(kind, change.option, change.text, saves))
    return tuple(found)


def _expectation(said: TargetPrediction, own: tuple[str, ...]) -> Expectation:
    told = _COUNTED.get(said.target, ()) if own else ()
    why = own + tuple(reason.text for reason in said.reasons if not reason.feature.startswith(told))
    return Expectation(said.target, said.source, said.basis, said.p, said.level, said.quantiles, why)

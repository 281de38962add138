"""What a policy judges and decides: facts, the case that goes through the rules, the outcome and who may see it.

PolicyCase is one submission; each rule may change its outcome. Operators see in every mode what would be done. Others
see what would be printed for them: in shadow nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal, Protocol

from msgspec import Meta

from gpuwaste.advice.policy.expected_waits import WaitTable
from gpuwaste.advice.policy.policy_file import Policy
from gpuwaste.advice.policy.size_table import SizeTable
from gpuwaste.advice.predict.prediction_types import PredictPolicy, TargetForecast
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.job_event import ScriptSays
from gpuwaste.jobs.verdict import ACTIONS, MAX_LINES, TOLD, Action, Mode, Op
from gpuwaste.slurm.submit.job_request import JobRequest

Spent = Literal["reject", "override"]
RANK: Final = {action: rank for rank, action in enumerate(ACTIONS)}
_SILENT: Final = frozenset({"off", "shadow"})


@dataclass(slots=True)
class Expectation(TargetForecast):
    """The prediction of one target by a model or history, as policies and texts use it.

    `why` are sentences in the user's own numbers, the strongest first.
    """

    why: tuple[str, ...] = ()


@dataclass(slots=True)
class Suggestion:
    """A smaller request: the exact option, why it is enough, and what it saves: GPUs, seconds of limit, bytes.

    `kind` is the name of the change's file in predict/changes (gpus, memory, time_limit).
    """

    kind: str
    option: str
    text: str
    saves: float


@dataclass(slots=True)
class SubmittedRequest:
    """One submission with facts that are not in its request.

    `groups` are the user's Unix groups. `stale`: the caller's job history is outdated. `unread`: reading the
    submission's texts would take too much CPU.
    """

    request: JobRequest
    op: Op = "submit"
    groups: frozenset[str] = frozenset()
    stale: bool = False
    test_only: bool = False
    unread: bool = False


@dataclass(slots=True, kw_only=True)
class SubmissionFacts(SubmittedRequest):
    """One submission as a policy sees it.

    `local_time` is the site's. `script` states whether jobs of this user and name failed before with this batch script;
    "unknown" also where there is no script, or no failure whose script is known. `waits` are those that the hub
    expects, `sizes` the smaller requests that it found. `last_job` is the id of the user's last ended job of this name.
    `campaign` is the campaign that holds the policy back from the user, "" for none.
    """

    local_time: datetime
    script: ScriptSays = "unknown"
    expected: tuple[Expectation, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    waits: WaitTable | None = None
    sizes: SizeTable | None = None
    last_job: int | None = None
    campaign: str = ""


class Spending(Protocol):
    """What a user has spent today, and how good a policy's rejects are; kept by callers whose decisions take effect."""

    def spent(self, kind: Spent, user: str) -> int:
        """Return how many of a kind the user has had since local midnight."""
        ...

    def precision(self, policy: str) -> tuple[float, int] | None:
        """Return the precision of a policy's warnings and rejects and how many they are; None if unknown."""
        ...


@dataclass(slots=True)
class DecisionStep:
    """One rule's step in a decision, for `gpuwaste policy explain`."""

    rule: str
    text: str
    action: Action


@dataclass(slots=True, kw_only=True)
class PolicyEffect:
    """The decision on one submission after the rules applied so far; the fields are those of a Verdict.

    `time_min_s` and `expected_start` (p10, p50, p90 in UTC seconds) are set only where the policy sets them; `notes`
    are printed whatever the action, unless `campaign` holds the policy back.
    """

    action: Action = "pass"
    would_be: Action = "pass"
    held: str = ""
    sampled: bool = False
    override: str = ""
    time_min_s: Annotated[int | None, Meta(description="The TimeMin that is set, seconds.")] = None
    expected_start: tuple[int, int, int] | None = None
    notes: tuple[str, ...] = ()
    campaign: str = ""


@dataclass(slots=True, kw_only=True)
class PolicyOutcome(PolicyEffect):
    """The final decision of a policy on one submission.

    `lines` are at most three: the user's lines where `action` is warn or reject, else those of `would_be`. `triggers`
    are the targets that reached a threshold.
    """

    policy: str
    mode: Mode
    lines: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    triggers: Mapping[str, float] = field(default_factory=dict)
    steps: tuple[DecisionStep, ...] = ()

    @property
    def reply_action(self) -> Action:
        """The action that is sent to a plugin: it prints only the lines of a warning or a reject."""
        return "warn" if self.notes and self.action not in TOLD and not self.campaign else self.action

    @property
    def printed(self) -> tuple[str, ...]:
        """What sbatch prints: nothing that is held back."""
        if self.campaign:
            return ()
        return ((*self.lines, *self.notes) if self.action in TOLD else self.notes)[:MAX_LINES]


@dataclass(slots=True)
class Trigger:
    """A target that reached a threshold: its number (a probability), what it calls for, and why."""

    target: str
    value: float
    action: Action
    expectation: Expectation
    suggestion: Suggestion | None = None

    @property
    def why(self) -> tuple[str, ...]:
        """Sentences in the user's own numbers, the strongest first."""
        if self.expectation.why:
            return self.expectation.why
        return (self.suggestion.text,) if self.suggestion is not None else ()


@dataclass(slots=True)
class PolicyCase(PolicyEffect):
    """What the rules work on.

    Judging rules change `triggers` and call `weigh`: action and would_be follow the strongest. Later rules call `hold`,
    which lowers only the action.
    """

    policy: Policy
    facts: SubmissionFacts
    spending: Spending
    chance: Callable[[], float]
    triggers: list[Trigger] = field(default_factory=list)
    done: bool = False  # no further rule is applied
    draws: bool = True  # whether a reject may pass at random
    overrides_used: bool = False  # an override was given, but today's overrides are used up
    steps: list[DecisionStep] = field(default_factory=list)

    @property
    def silent(self) -> bool:
        """Whether the user sees nothing: by the mode, an old history, or a rule that held everything back."""
        held = bool(self.held) and self.action not in TOLD
        return self.policy.mode not in TOLD or self.facts.stale or held

    def weigh(self) -> None:
        """Set action and would_be by the triggers."""
        self.would_be = self.action = max((t.action for t in self.triggers), key=RANK.__getitem__, default="pass")

    def hold(self, most: Action, reason: str) -> None:
        """Lower the action to `most`; `reason` names what held it back."""
        if RANK[most] < RANK[self.action]:
            self.action, self.held = most, reason

    def end(self, reason: str) -> None:
        """Give no advice on this submission and apply no further rule."""
        self.held, self.done = reason, True

    def step(self, rule: str, text: str) -> None:
        """Add a rule's step."""
        self.steps.append(DecisionStep(rule, text, self.action))


def policy_preview(scope: Scope, decision: PolicyOutcome) -> PredictPolicy:
    """Return the document of what would be done."""
    everything = scope.everything
    silent = (decision.mode in _SILENT or bool(decision.campaign)) and not everything
    return PredictPolicy(
        policy="" if silent else decision.policy,
        mode="" if silent else decision.mode,
        action=decision.action,
        would_be=decision.would_be if everything else decision.action,
        held=decision.held if everything else "",
        lines=list(decision.lines if everything else decision.printed),
    )

"""PolicyCase: one submission on its way through the rules, each of which may change what is said of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.advice.policy.declarations import Policy
from gpuwaste.advice.policy.facts import DecisionStep, Expectation, PolicySaid, Spending, SubmissionFacts, Suggestion
from gpuwaste.jobs.verdict import ACTIONS, Action

RANK: Final = {action: rank for rank, action in enumerate(ACTIONS)}


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
class PolicyCase(PolicySaid):
    """What the rules work on.

    Judging rules change `triggers` and call `weigh`: action and would_be follow the strongest. Later rules call
    `hold`, which lowers the action alone.
    """

    policy: Policy
    facts: SubmissionFacts
    spending: Spending
    chance: Callable[[], float]
    triggers: list[Trigger] = field(default_factory=list)
    done: bool = False  # no further rule is asked
    draws: bool = True  # whether chance may let a reject pass
    overrides_used: bool = False  # an override was given, but those of today are used up
    steps: list[DecisionStep] = field(default_factory=list)

    def weigh(self) -> None:
        """Let action and would_be follow the triggers."""
        self.would_be = self.action = max((t.action for t in self.triggers), key=RANK.__getitem__, default="pass")

    def hold(self, most: Action, reason: str) -> None:
        """Lower the action to `most`; `reason` names what held it back."""
        if RANK[most] < RANK[self.action]:
            self.action, self.held = most, reason

    def end(self, reason: str) -> None:
        """Say nothing of this submission and ask no further rule."""
        self.held, self.done = reason, True

    def step(self, rule: str, text: str) -> None:
        """Note a rule's word."""
        self.steps.append(DecisionStep(rule, text, self.action))

"""Rule: the tables and keys of a rule's file, each declared once, with the text that the reference prints.

A condition is an Expression: its text, and its SQL in parts.
"""

# ruff: noqa: RUF009 - a key is declared by a call, and every default is immutable

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Literal, get_args

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.actions.action_types import Approval
from gpuwaste.act.rules.rule_facts import About
from gpuwaste.advice.policy.policy_file import NONE, Patterns, Ratio
from gpuwaste.core.day_hours import Hours
from gpuwaste.core.typed_toml import key as _key
from gpuwaste.core.units import DAY_S, say_duration

Mode = Literal["observe", "notify", "act"]
Notice = Literal["before", "none"]
NOTICES: Final[tuple[Notice, ...]] = get_args(Notice)
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
NOTIFY: Final = "notify"  # the action that mode notify allows
MINUTE: Final = "minute"
NEVER: Final = date.max
NO_HOURS: Final = Hours(0, 0)


@dataclass(frozen=True, slots=True)
class ExpressionPart:
    """A condition that must hold, one of those that `&&` joins: its text, its SQL and the facts that it names."""

    text: str
    sql: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition."""

    text: str
    sql: str
    names: tuple[str, ...]
    parts: tuple[ExpressionPart, ...]


class Duration(int):
    """A duration in seconds, in a file "90s", "30m", "2h" or "1d"."""


@dataclass(frozen=True, slots=True)
class RuleHead:
    """The keys of the file itself."""

    mode: Mode = _key(
        "observe",
        "observe: only record what the rule would do; notify: send its mails, record the rest; act: do everything.",
    )
    about: About = _key("running", "What the rule is about: running or waiting jobs, a node, or the model in use.")
    on: tuple[str, ...] = _key(
        (MINUTE,), 'When the rule is evaluated: "minute", or kinds of events, such as ["job.started"].'
    )
    where: str = _key("", "The condition, a CEL expression over the facts below.")
    after: Duration = _key(Duration(0), "How long the condition must hold before the first step.")
    since: str = _key(
        "", "A fact in seconds for how long it has held, such as ledger.idle_s; empty: the hub's own clock."
    )
    cooldown: Duration = _key(
        Duration(DAY_S),
        "A step is not repeated for the same job or node within this time, unless the condition was interrupted before"
        " a step that cannot be undone.",
    )
    valid: Duration = _key(Duration(900), "An action that is not taken up within this time is dropped.")
    approve: Approval = _key(
        "none",
        "person: somebody must approve each action (`gpuwaste rules approve ID`). To be set in mode act if a step may"
        " end a job.",
    )
    notify: Notice = _key(
        "before",
        "none: in mode act a step by which a user may lose a run (cancel, requeue, shrink, checkpoint, signal,"
        " lower_request, resubmit) needs no notify step to the user before it.",
    )
    keep: bool = _key(
        default=True,
        text="Whether the rule waits for a run that is kept (`gpuwaste keep`). false only where each step protects the"
        " job: notify, comment, signal, checkpoint, extend_limit, release.",
    )
    precision_floor: Ratio = _key(
        Ratio(0.0),
        "In mode act: if the share of runs that the rule judged right falls below this, it goes back to mode notify"
        " until `gpuwaste rules restore`; 0: never.",
    )
    precision_steps: int = _key(20, "Runs that must be judged before precision_floor counts.")
    quiet_hours: Hours = _key(NO_HOURS, 'Local hours without any step, "20:00-07:00"; it is done later.')
    expires: date = _key(NEVER, "Last day of the rule, a TOML date: 2027-03-31.")


@dataclass(frozen=True, slots=True)
class StepBudget:
    """Maximum number of steps in 24 hours; a step beyond is done later, if the condition still holds."""

    rule_per_day: int = _key(100, "Steps of the rule; those of earlier versions of its file count.")
    user_per_day: int = _key(10, "Steps of the rule that concern one user.")


@dataclass(frozen=True, slots=True)
class RuleExemption:
    """Jobs that the rule never touches, although they match. One match is enough."""

    users: Patterns = _key(NONE, "Shell patterns of the user's name.")
    accounts: Patterns = _key(NONE, "Shell patterns of the account.")
    partitions: Patterns = _key(NONE, "Shell patterns of the partition.")
    qos: Patterns = _key(NONE, "Shell patterns of the QOS.")
    reservations: Patterns = _key(NONE, "Shell patterns of the reservation.")
    nodes: Patterns = _key(NONE, "Shell patterns of a node's name, for rules about nodes.")
    waste: bool = _key(
        default=True, text="Jobs whose waste is exempt in part: memory-resident, or within the interactive grace."
    )
    coverage_below: Ratio = _key(
        Ratio(0.8), "Jobs with a lower coverage, if the rule names a fact of the ledger; 0: no floor."
    )


@dataclass(frozen=True, slots=True)
class RuleStep:
    """One `[[do]]`: an action with its options, and how long the condition must hold before it."""

    after_s: int
    action: str
    options: Mapping[str, str]

    @property
    def words(self) -> str:
        """The step for a person: "cancel after 2 h", "notify at once"."""
        return f"{self.action} after {say_duration(self.after_s)}" if self.after_s else f"{self.action} at once"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `hash` changes with the file, and the ladder then starts again.

    `names` are the facts that it names; `of_ledger` is whether one of them is reported by agents.
    """

    name: str
    file: str
    hash: str
    head: RuleHead
    where: Expression
    steps: tuple[RuleStep, ...]
    budget: StepBudget = field(default_factory=StepBudget)
    exempt: RuleExemption = field(default_factory=RuleExemption)
    names: tuple[str, ...] = field(init=False)
    of_ledger: bool = field(init=False)

    def __post_init__(self) -> None:
        """Set the fields that follow from the others."""
        names = tuple(dict.fromkeys((*self.where.names, *([self.head.since] if self.head.since else []))))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "of_ledger", any(name.startswith("ledger.") for name in names))

    @property
    def protects(self) -> bool:
        """Whether it only keeps jobs from losing work: such a rule is for everybody.

        A signal before a step that ends the job protects it from this rule alone.
        """
        kinds = [actions()[step.action] for step in self.steps]
        return any(kind.protects for kind in kinds) and not any(kind.ends_runs and not kind.protects for kind in kinds)

    @property
    def periodic(self) -> bool:
        """Whether it is evaluated each minute."""
        return MINUTE in self.head.on

    def does(self, step: RuleStep) -> bool:
        """Return whether its mode allows a step; otherwise it is only recorded."""
        return self.head.mode == "act" or (self.head.mode == "notify" and step.action == NOTIFY)

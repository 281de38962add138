"""ActionKind: one kind of action: what it takes, what it needs, and the functions that see, do and confirm it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from gpuwaste.act.actions.option import ActionOption
from gpuwaste.act.actions.slurm_port import ActionSlurm
from gpuwaste.act.rules.intent import ActionTarget, Intent
from gpuwaste.core.typed_toml import nearest

Subject = Literal["run", "node", "model", "any"]
Rights = Literal["none", "operator", "administrator", "program"]
Standing = Literal["todo", "done", "moot", "open"]
Plan = Mapping[str, str]
NODE: Final = "node/"  # and its name: the subject of an intent about a node
MODEL: Final = "model/"  # the same of a model


@dataclass(frozen=True, slots=True)
class ActionRequest(ActionTarget):
    """An action to take: on which run or node, and its options, each set.

    Runs of `exempt_accounts` are left alone, whatever account the intent names: Slurm's record counts.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    exempt_accounts: Collection[str] = ()

    @property
    def node(self) -> str:
        """The node's name, "" where the request is about a run."""
        return self.subject.removeprefix(NODE) if self.subject.startswith(NODE) else ""

    @property
    def model(self) -> str:
        """The model's name, "" where the request is about none."""
        return self.subject.removeprefix(MODEL) if self.subject.startswith(MODEL) else ""


@dataclass(frozen=True, slots=True)
class LookResult:
    """What Slurm shows: the action is to be done, is done, or concerns nothing that is there any more.

    Of one that was sent it may also be open: Slurm is about to show it.

    `plan` holds what was read for acting and confirming (an array task's printed id, a new limit); it is stored before
    the action is sent, so that a later look compares with the same values.
    """

    standing: Standing
    reason: str = ""
    plan: Plan = field(default_factory=dict)


Look = Callable[[ActionRequest, ActionSlurm, Plan], LookResult]
Act = Callable[[ActionRequest, ActionSlurm, Plan], str]


@dataclass(frozen=True, slots=True)
class SiteProgram:
    """What a program does: `words`, or those of the key [actor] NAME_program where it is one of the site.

    `places` are the names that may stand in braces in these words; the look's plan has the value of each.
    """

    name: str
    places: tuple[str, ...]
    words: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of [actor]."""
        return f"{self.name}_program"

    @property
    def label(self) -> str:
        """What an error of [actor] names: the key, or the action whose words are ours."""
        return f"actions: {self.name}" if self.words else self.key


@dataclass(frozen=True, slots=True)
class Execution:
    """How the actor takes an action: `look` gets the plan of the first look, empty before; `act` gives Slurm's words.

    `visible` says whether `look` can see that the action was done: one that cannot be seen is never sent again, and is
    confirmed by Slurm's answer, or by a program's exit code.
    """

    look: Look
    act: Act | SiteProgram
    visible: bool = True


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A kind; without an `execution` the hub takes it, which has no rights in Slurm.

    `needs` is the AdminLevel of the actor's user in sacctmgr, or "program" where a program of the site acts. `undo` is
    how it is undone, "" where it cannot be. `ends_runs` says whether a user may lose a run by it.
    """

    name: str
    about: str
    subject: Subject
    needs: Rights
    undo: str
    execution: Execution | None = None
    options: tuple[ActionOption, ...] = ()
    ends_runs: bool = False

    @property
    def final(self) -> bool:
        """Whether it changes something that cannot be undone; a mail changes nothing."""
        return self.execution is not None and not self.undo

    def problem(self, options: Mapping[str, str]) -> str:
        """Return what is wrong with the options of a rule's action, "" where nothing is."""
        known = {option.name: option for option in self.options}
        for name in options:
            if name not in known:
                hint = nearest(name, set(known)) if known else ": it has no options"
                return f"{self.name}: unknown option {name!r:.40}{hint}"
        for name, option in known.items():
            given = options.get(name, option.default)
            if given is None:
                return f"{self.name}: option {name} is missing: {option.about}"
            wrong = option.check(given) if name in options else ""
            if wrong:
                return f"{self.name}: option {name}: {wrong}"
        return ""

    def request(self, intent: Intent, exempt_accounts: Collection[str] = ()) -> ActionRequest:
        """Return an intent as a request, with the defaults of options that it leaves out."""
        usual = {option.name: option.default for option in self.options if option.default is not None}
        return ActionRequest(intent.subject, intent.run, intent.user, {**usual, **intent.options}, exempt_accounts)

    def refusal(self, intent: Intent) -> str:
        """Return why an intent of this kind cannot be taken up, "" where it can."""
        if self.subject == "run" and (intent.run is None or not intent.user):
            return f"{self.name}: the intent does not name a run and its user"
        if self.subject == "node" and not intent.subject.startswith(NODE):
            return f"{self.name}: the intent does not name a node: {intent.subject!r:.80}"
        if self.subject == "model" and not intent.subject.startswith(MODEL):
            return f"{self.name}: the intent does not name a model: {intent.subject!r:.80}"
        return self.problem(intent.options)

"""ActionKind: one kind of action: its options, what it needs, how it is checked, done and confirmed in Slurm.

Each file of kinds/ defines one; `actions` returns all of them by name. CommandClient is an ActionSlurm.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, Protocol

from gpuwaste.act.actions import kinds
from gpuwaste.act.actions.action_types import ActionEntry
from gpuwaste.core.errors import ParseError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.typed_toml import nearest
from gpuwaste.core.units import format_duration, parse_duration_s
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.cluster_model import Node, Partition

_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*")
_BREAKS: Final = {";", "="}  # in a Slurm comment, where `;gw=ID` is the mark of the submit advice
Subject = Literal["run", "node", "model", "any"]
Rights = Literal["none", "operator", "administrator", "program"]
Standing = Literal["todo", "done", "moot", "open"]
Plan = Mapping[str, str]
NODE: Final = "node/"  # prefix of a node's name: the subject of an intent about a node
MODEL: Final = "model/"  # the same for a model


@dataclass(frozen=True, slots=True)
class ActionOption:
    """One parameter. `check` returns the error in a text, "" for none; with `default` None a value is required."""

    name: str
    about: str
    check: Callable[[str], str]
    default: str | None = None


def line(most: int) -> Callable[[str], str]:
    """Return a check for a text of one line without control characters."""

    def check(text: str) -> str:
        if not text.strip():
            return "empty"
        if len(text) > most:
            return f"{len(text)} characters, {most} at most"
        return "" if _PLAIN.fullmatch(text) else "a line break or control character"

    return check


def mark(most: int) -> Callable[[str], str]:
    """Return a check for a line that becomes part of a job's comment: without `;` and `=`."""
    plain = line(most)

    def check(text: str) -> str:
        return plain(text) or ("; and = are not allowed" if _BREAKS & set(text) else "")

    return check


def lines(most: int) -> Callable[[str], str]:
    """Return a check for a text of several lines: line breaks and tabs are the only control characters."""

    def check(text: str) -> str:
        if not text.strip():
            return "empty"
        if len(text) > most:
            return f"{len(text)} characters, {most} at most"
        return "" if _PLAIN.fullmatch(text.replace("\n", " ").replace("\t", " ")) else "a control character"

    return check


def choice(*known: str) -> Callable[[str], str]:
    """Return a check for one of some values."""

    def check(text: str) -> str:
        return "" if text in known else f"{text!r:.40}: expected {', '.join(known)}"

    return check


def duration(least_s: int, most_s: int) -> Callable[[str], str]:
    """Return a check for a duration as Slurm writes it, between two bounds in seconds."""

    def check(text: str) -> str:
        try:
            found = parse_duration_s(text)
        except ParseError as error:
            return str(error)
        if found is not None and least_s <= found <= most_s:
            return ""
        return f"{text!r:.40}: expected a duration from {format_duration(least_s)} to {format_duration(most_s)}"

    return check


class ActionSlurm(Protocol):
    """One cluster. Every method may block up to the timeout and raises SlurmError or ParseError."""

    def cluster_name(self) -> str:
        """Return ClusterName."""
        ...

    def job(self, job_id: int) -> list[RunningJob]:
        """Return the records of one job: several for an array's or a het job's first id, none if it is unknown."""
        ...

    def partitions(self) -> list[Partition]:
        """Return the partitions."""
        ...

    def nodes(self) -> list[Node]:
        """Return the nodes."""
        ...

    def text(self, *argv: str) -> str:
        """Run a Slurm command and return its output; SlurmError if its exit code is not 0."""
        ...


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """An action to take: on which run, node or model, and its options, each set.

    `subject` is the run's key as text, node/NAME or model/NAME. Runs of `exempt_accounts` are left alone, whatever
    account the action names: the account in Slurm's record counts.
    """

    subject: str
    run: RunKey | None = None
    user: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    exempt_accounts: Collection[str] = ()

    @property
    def node(self) -> str:
        """The node's name, "" if the request is about a run."""
        return self.subject.removeprefix(NODE) if self.subject.startswith(NODE) else ""

    @property
    def model(self) -> str:
        """The model's name, "" if the request is about none."""
        return self.subject.removeprefix(MODEL) if self.subject.startswith(MODEL) else ""


@dataclass(frozen=True, slots=True)
class LookResult:
    """What Slurm shows: the action is still to do, is done, or is moot because its subject no longer exists.

    An action that was sent may also be open: Slurm does not show the result yet.

    `plan` has what was read for acting and confirming (an array task's printed id, a new limit); it is stored before
    the action is sent, so that a later look compares with the same values.
    """

    standing: Standing
    reason: str = ""
    plan: Plan = field(default_factory=dict)


Look = Callable[[ActionRequest, ActionSlurm, Plan], LookResult]
Act = Callable[[ActionRequest, ActionSlurm, Plan], str]


@dataclass(frozen=True, slots=True)
class SiteProgram:
    """A program that the actor runs: `words` are its argv, or the key [actor] NAME_program has it (a site's program).

    `places` are the names that may be in braces in these words; the look's plan has the value of each.
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
        """What an error of [actor] names: the key, or the action whose argv is built in."""
        return f"actions: {self.name}" if self.words else self.key


@dataclass(frozen=True, slots=True)
class Execution:
    """How the actor takes an action: `look` gets the plan of the first look, empty before; `act` returns the output.

    `visible` is whether `look` can see that the action was done. If not, the action is never sent again, and is
    confirmed by Slurm's answer, or by a program's exit code.
    """

    look: Look
    act: Act | SiteProgram
    visible: bool = True


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A kind; without an `execution` the hub executes it, which has no rights in Slurm.

    `needs` is the AdminLevel of the actor's user in sacctmgr, or "program" if a site program acts. `undo` is how to
    undo it, "" if it cannot be undone. `ends_runs` is whether a user may lose a run by it, `protects` whether it keeps
    a user from losing work: no campaign holds it back.
    `severity` orders the steps of a ladder, the one with the least regret first: 0 takes nothing from a job.
    """

    name: str
    about: str
    subject: Subject
    needs: Rights
    undo: str
    execution: Execution | None = None
    options: tuple[ActionOption, ...] = ()
    ends_runs: bool = False
    protects: bool = False
    severity: int = 0
    together: Callable[[Mapping[str, str]], str] = lambda _: ""
    """Checks the options together; each is good by itself. Returns the error, "" for none."""

    @property
    def final(self) -> bool:
        """Whether it makes a change that cannot be undone; a mail changes nothing."""
        return self.execution is not None and not self.undo

    @property
    def warned(self) -> bool:
        """Whether it waits for the mail that a rule sends before it, and a resumed job is warned again before it."""
        return self.final or self.ends_runs

    def problem(self, options: Mapping[str, str]) -> str:
        """Return the error in the options of a rule's action, "" for none."""
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
        wrong = self.together(options)
        return f"{self.name}: {wrong}" if wrong else ""

    def request(self, intent: ActionEntry, exempt_accounts: Collection[str] = ()) -> ActionRequest:
        """Return an intent as a request, with defaults for options that it leaves out."""
        usual = {option.name: option.default for option in self.options if option.default is not None}
        return ActionRequest(intent.subject, intent.run, intent.user, {**usual, **intent.options}, exempt_accounts)

    def refusal(self, intent: ActionEntry) -> str:
        """Return why an intent of this kind is not accepted, "" if it is."""
        if self.subject == "run" and (intent.run is None or not intent.user):
            return f"{self.name}: the intent does not name a run and its user"
        if self.subject == "node" and not intent.subject.startswith(NODE):
            return f"{self.name}: the intent does not name a node: {intent.subject!r:.80}"
        if self.subject == "model" and not intent.subject.startswith(MODEL):
            return f"{self.name}: the intent does not name a model: {intent.subject!r:.80}"
        return self.problem(intent.options)


@cache
def actions() -> Mapping[str, ActionKind]:
    """Return each kind by its name; every file of `kinds` is loaded."""
    return {kind.name: kind for kind in (module.KIND for module in ModuleRegistry[Any](kinds, "KIND").values())}

"""Rules from files: a directory of TOML, one rule per file, reloaded if a file changes.

A rule's name is its file's. An error names file, line and key; a bad file does not affect the other rules.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.actions.action_types import Approval
from gpuwaste.act.rules.rule_definition import (
    MINUTE,
    MODES,
    NOTICES,
    NOTIFY,
    Duration,
    Expression,
    Mode,
    Notice,
    Rule,
    RuleExemption,
    RuleHead,
    RuleStep,
    StepBudget,
)
from gpuwaste.act.rules.rule_facts import ABOUTS, About, facts_of, problem_of, widest
from gpuwaste.advice.policy.policy_file import READERS
from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.site_files import WatchedFiles, folder_files, read_each
from gpuwaste.core.text import PLAIN_NAME
from gpuwaste.core.typed_toml import Reader, nearest, parse_toml, read_data, read_table
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.events.kind_catalogue import kinds_of
from gpuwaste.store.duckdb_connection import connect

MAX_FILE_B: Final = 64 * 1024
MAX_STEPS: Final = 10
_SPAN: Final = re.compile(r"([0-9]{1,6})([smhd])", re.ASCII)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": DAY_S}
_TABLES: Final[Mapping[str, type]] = {"budget": StepBudget, "exempt": RuleExemption}
_SQL_TYPES: Final = {"bool": "BOOLEAN", "int": "BIGINT", "double": "DOUBLE", "string": "VARCHAR"}
_QUOTED: Final = re.compile(r"'([^']{1,80})'")
_REFUSED: Final = log_event.error(
    "rule-refused: rule not used: {error}",
    "`gpuwaste rules check`, then fix the file. The other rules stay in use.",
)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The usable rules, in the order of their names, and the errors of the others."""

    rules: Sequence[Rule]
    errors: Sequence[ConfigError]


def load_rules(directory: Path) -> RuleSet:
    """Return the rules of a directory's `*.toml`; a missing directory has none."""
    try:
        return load_files(folder_files(directory, "rules", "[hub] rules_dir"))
    except ConfigError as error:
        return RuleSet((), [error])


def load_files(paths: Iterable[Path]) -> RuleSet:
    """Return the rules of these files, each on its own: an error in one does not affect the others."""
    rules: dict[str, Rule] = {}

    def load(path: Path) -> None:
        rule = load_rule(path)
        if (known := rules.setdefault(rule.name, rule)) is not rule:
            raise ConfigError(f"{path}: name {rule.name!r}: is used by {known.file}: rename one")

    _, errors = read_each(paths, load)
    return RuleSet(tuple(rules.values()), tuple(errors))


def load_rule(path: Path) -> Rule:
    """Return the rule of a file. Raises ConfigError."""
    where, name = str(path), path.name.removesuffix(".toml")
    if not PLAIN_NAME.fullmatch(name):
        raise ConfigError(f"{where}: the file's name is the rule's: letters, digits, . _ and - only, 64 at most")
    data = read_data(path, MAX_FILE_B, "a rule")
    return rule_from_toml(data, where, name)


def rule_from_toml(data: bytes, where: str, name: str) -> Rule:
    """Return a rule of TOML; `where` names it in errors, `name` is the rule's. Raises ConfigError."""
    parsed = parse_toml(data, where)
    try:
        return _rule(parsed, name, hashlib.sha256(name.encode() + b"\0" + data).hexdigest(), where)
    except ConfigError as error:
        words = str(error).removeprefix(where).removeprefix(":").lstrip()
        line = _line_of(data.decode("utf-8"), words)
        raise ConfigError(f"{where}:{line}: {words}" if line else f"{where}: {words}") from error


def _rule(parsed: dict[str, Any], name: str, digest: str, where: str) -> Rule:
    tables = {*_TABLES, "do"}
    keys = {field.removesuffix("_") for field in RuleHead.__dataclass_fields__}
    for given in parsed:
        if given not in tables | keys:
            raise ConfigError(f"unknown key {given!r:.60}{nearest(given, tables | keys)}")
    plain = {given: value for given, value in parsed.items() if given not in tables}
    head: RuleHead = read_table(RuleHead, plain, where + ":", _READERS)
    rest = {
        given: read_table(kind, parsed[given], f"[{given}]", _READERS)
        for given, kind in _TABLES.items()
        if given in parsed
    }
    from gpuwaste.act.rules.expression_reader import read_expression  # noqa: PLC0415 only a site with rules needs a parser

    facts = facts_of(head.about)
    try:
        expression = read_expression(head.where, facts)
        _check_compiles(expression, head.about)
    except ConfigError as error:
        raise ConfigError(f"where: {error}" + ("" if head.where else ": write a condition")) from error
    if head.since and facts.get(head.since) != "double":
        raise ConfigError(f"since: unknown fact {head.since!r:.60}{nearest(head.since, _seconds(head.about))}")
    _check_on(head)
    steps = _steps(parsed.get("do"), head)
    _check_words(parsed, head, steps)
    _check_keep(head, steps)
    return Rule(name, where, digest, head, expression, steps, **rest)


def _check_on(head: RuleHead) -> None:
    kinds = [one for one in head.on if one != MINUTE]
    if not head.on:
        raise ConfigError('on: empty: expected "minute" or kinds of events')
    if kinds:
        kinds_of(kinds, "on")
    if kinds and MINUTE not in head.on and head.after and not head.since:
        raise ConfigError('after: an event lasts no time: add "minute" to on, or remove after')


def _steps(data: Any, head: RuleHead) -> tuple[RuleStep, ...]:
    if not isinstance(data, list) or not data or not all(isinstance(one, dict) for one in data):
        raise ConfigError("do: expected at least one table [[do]] with action = ...")
    if len(data) > MAX_STEPS:
        raise ConfigError(f"do: {len(data)} steps, {MAX_STEPS} at most")
    steps: list[RuleStep] = []
    for number, table in enumerate(data, start=1):
        place = f"[[do]] {number}"
        step = _step(table, head, place)
        if steps and step.after_s < steps[-1].after_s:
            raise ConfigError(f"{place} after: earlier than the step before")
        steps.append(step)
    return tuple(steps)


def _check_words(parsed: dict[str, Any], head: RuleHead, steps: Sequence[RuleStep]) -> None:
    """Require that a rule that may end jobs states the delay, the mail before it, and the approval."""
    for number, (step, table) in enumerate(zip(steps, parsed["do"], strict=True), start=1):
        if head.mode != "act" or not actions()[step.action].ends_runs:
            continue
        told = any(one.action == NOTIFY and one.options.get("to", "user") == "user" for one in steps[: number - 1])
        words = (
            ("after" in parsed or "after" in table, 'after = "2h" ("0s": at once)'),
            (
                told or head.notify == "none",
                'a [[do]] with action = "notify" to the user before it, or notify = "none"',
            ),
            ("approve" in parsed, 'approve = "person" (or "none")'),
        )
        if missing := [word for said, word in words if not said]:
            why = f"{step.action!r} may end jobs: mode act needs"
            raise ConfigError(f"[[do]] {number} action: {why} {'; '.join(missing)}")


def _check_keep(head: RuleHead, steps: Sequence[RuleStep]) -> None:
    """Require that owners can answer before a job is lost: a rule that does not wait for them only protects."""
    kinds = [actions()[step.action] for step in steps]
    harmful = next((kind.name for kind in kinds if kind.severity and not kind.protects), None)
    if not head.keep and harmful is not None:
        raise ConfigError(f"keep: false is for rules that protect a job, {harmful!r} does not: remove keep")


def _step(table: dict[str, Any], head: RuleHead, place: str) -> RuleStep:
    options = {name: value for name, value in table.items() if name not in {"after", "action"}}
    action, after = table.get("action"), _span(table.get("after", "0s"), f"{place} after")
    if not isinstance(action, str) or action not in actions():
        known = set(actions())
        hint = nearest(action, known) if isinstance(action, str) else f": known are {', '.join(sorted(known))}"
        raise ConfigError(f"{place} action: unknown action {action!r:.60}{hint}")
    for name, value in options.items():
        if not isinstance(value, str):
            raise ConfigError(f"{place} {name:.60}: expected a text in quotes, found {value!r:.60}")
    kind = actions()[action]
    subject = head.about if head.about in {"node", "model"} else "run"
    if kind.subject not in {subject, "any"}:
        raise ConfigError(f"{place} action: {action!r} is for a {kind.subject}, the rule is about {head.about}")
    if wrong := kind.problem(options):
        raise ConfigError(f"{place} {wrong}")
    for name, value in options.items():
        if wrong := problem_of(value, facts_of(head.about)):
            raise ConfigError(f"{place} {name}: {wrong}")
    long = {name: widest(value, facts_of(head.about)) for name, value in options.items()}
    if wrong := kind.problem(long):
        raise ConfigError(f"{place} {wrong}, with the longest names")
    return RuleStep(max(int(head.after), after), action, options)


def _check_compiles(expression: Expression, about: About) -> None:
    """Have DuckDB run the condition over no rows, which finds an invalid pattern. Raises ConfigError."""
    columns = ", ".join(f'NULL::{_SQL_TYPES[kind]} AS "{name}"' for name, kind in facts_of(about).items())
    try:
        with connect(options={"threads": "1"}) as db:
            db.execute(f"SELECT {expression.sql} FROM (SELECT {columns})").fetchall()  # noqa: S608 made by Translator
    except duckdb.Error as error:
        raise ConfigError(str(error).splitlines()[0][:200]) from error


def _seconds(about: About) -> set[str]:
    return {name for name, kind in facts_of(about).items() if kind == "double" and name.endswith("_s")}


def _line_of(text: str, words: str) -> int:
    """Return the first line that has what an error quotes, or its key; 0 where none is found."""
    key = re.match(r"(?:\[+(\w+)\]+ (?:\d+ )?)?(\w+)", words)
    quoted = [match[1] for match in _QUOTED.finditer(words)][:1]
    for word in [*quoted, *(group for group in (key.groups()[::-1] if key else ()) if group)]:
        for number, line in enumerate(text.splitlines(), start=1):
            if word in line.partition("#")[0]:
                return number
    return 0


def _span(value: Any, where: str) -> Duration:
    found = _SPAN.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ConfigError(f'{where}: expected a duration such as "90s", "30m", "2h" or "1d", found {value!r:.40}')
    return Duration(int(found[1]) * _UNITS[found[2]])


def _choice(known: Sequence[str]) -> Reader:
    def read(value: Any, where: str) -> str:
        if value not in known:
            hint = nearest(value, set(known)) if isinstance(value, str) else f": known are {', '.join(known)}"
            raise ConfigError(f"{where}: {value!r:.40} is not a value of this key{hint}")
        return str(value)

    return read


def _on(value: Any, where: str) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items) or len(items) > 20:  # noqa: PLR2004
        raise ConfigError(f'{where}: expected "minute" or a list of kinds of events, found {value!r:.60}')
    return tuple(items)


_READERS: Final[Mapping[Any, Reader]] = {
    **READERS,
    Duration: _span,
    Mode: _choice(MODES),
    About: _choice(ABOUTS),
    Approval: _choice(("none", "person")),
    Notice: _choice(NOTICES),
    tuple[str, ...]: _on,
}


class RulesInUse:
    """One directory's rules; one thread refreshes, any may read."""

    def __init__(self, directory: Path) -> None:
        self._files = WatchedFiles(directory, lambda: load_rules(directory), RuleSet((), ()))

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules, by name."""
        return self._files.content.rules

    @property
    def errors(self) -> Sequence[ConfigError]:
        """The errors of files that are not in use."""
        return self._files.content.errors

    def removed(self, name: str) -> bool:
        """Return whether the file of a rule was removed; false where the directory cannot be read."""
        return not self._files.has(f"{name}.toml")

    def refresh(self) -> None:
        """Read the files again if one has changed; a new error is logged."""
        before = set(map(str, self.errors))
        self._files.refresh()
        for error in self.errors:
            if str(error) not in before:
                _REFUSED.log(error=error)

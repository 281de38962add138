"""A policy file's tables and keys, typed, each declared once: how it is read from TOML, and the reference's text.

Values are ready for use: patterns are compiled, hours are minutes of the day.
"""

# ruff: noqa: RUF009 - a key is declared by a call, and every default is immutable

import fnmatch
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final

from gpuwaste.core.day_hours import DAY_MINUTES, Hours, parse_day_hours
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import Reader, nearest
from gpuwaste.core.typed_toml import key as _key
from gpuwaste.jobs.verdict import MODES, Mode

MODEL: Final = "model"
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MAX_PATTERNS: Final = 10_000
_MAX_PATTERN: Final = 256
GPUS: Final = "gpus"
PROBABILITIES: Final = ("failure", "timeout", "failure_or_cancel")  # targets that are used as a probability directly
QUANTITIES: Final = {"walltime": "time_limit", "memory": "memory"}  # target -> the kind of suggestion that it needs
TARGETS: Final = ("failure", "timeout", "failure_or_cancel", GPUS, "memory", "walltime")  # first of equals is reported
FIRST_DAY: Final = date.min
LAST_DAY: Final = date.max


class Patterns:
    """Shell patterns (`*`, `?`, `[...]`), case-sensitive; false where there are none."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = tuple(texts)
        self._match = re.compile("|".join(fnmatch.translate(text) for text in self.texts)).match

    def __bool__(self) -> bool:
        return bool(self.texts)

    def match(self, value: str) -> bool:
        """Return whether one of them matches the entire value."""
        return bool(self.texts) and self._match(value) is not None

    def match_any(self, values: Iterable[str]) -> bool:
        """Return whether one of them matches one of the values."""
        return bool(self.texts) and any(self._match(value) for value in values)

    def __repr__(self) -> str:
        return f"[{', '.join(self.texts)}]"


@dataclass(frozen=True, slots=True)
class Weekdays:
    """Days of the week, 0 for Monday."""

    numbers: frozenset[int]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A probability, the model's own operating point (`model`), or none: never reached."""

    p: float | None = None
    model: bool = False

    def __bool__(self) -> bool:
        return self.model or self.p is not None

    def __str__(self) -> str:
        return MODEL if self.model else f"{self.p:g}" if self.p is not None else "none"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A share, 0 to 1."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:g}"


NONE: Final = Patterns()
ALWAYS: Final = Hours(0, DAY_MINUTES)
EVERY_DAY: Final = Weekdays(frozenset(range(7)))
NOT_SET: Final = Threshold()


def _patterns(value: Any, where: str) -> Patterns:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f'{where}: expected a list of patterns, such as ["gpu*"], found {value!r:.80}')
    if not value:
        raise ConfigError(f"{where}: an empty list matches nothing: remove the key, or add patterns")
    if len(value) > _MAX_PATTERNS or any(len(item) > _MAX_PATTERN for item in value):
        raise ConfigError(f"{where}: at most {_MAX_PATTERNS} patterns of {_MAX_PATTERN} characters")
    return Patterns(value)


def _days(value: Any, where: str) -> Weekdays:
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise ConfigError(f'{where}: expected a list of days, such as ["mon", "tue"], found {value!r:.80}')
    for item in value:
        if item not in DAYS:
            raise ConfigError(f"{where}: {item!r:.80} is not a day{nearest(item, set(DAYS))}")
    return Weekdays(frozenset(DAYS.index(item) for item in value))


def _date(value: Any, where: str) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ConfigError(f"{where}: expected a date without quotes, such as 2026-12-01, found {str(value)!r:.80}")
    return value


def _mode(value: Any, where: str) -> Mode:
    if value not in MODES:
        hint = nearest(value, set(MODES)) if isinstance(value, str) else f": known are {', '.join(MODES)}"
        raise ConfigError(f"{where}: {value!r:.80} is not a mode{hint}")
    mode: Mode = value
    return mode


def _threshold(value: Any, where: str) -> Threshold:
    if value == MODEL:
        return Threshold(model=True)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ConfigError(f'{where}: expected a probability over 0 and up to 1, or "model", found {value!r:.80}')
    return Threshold(float(value))


def _ratio(value: Any, where: str) -> Ratio:
    number = float("nan") if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    if math.isnan(number) or not 0 <= number <= 1:
        raise ConfigError(f"{where}: expected a share from 0 to 1, found {value!r:.80}")
    return Ratio(number)


READERS: Final[Mapping[Any, Reader]] = {
    Patterns: _patterns,
    Hours: parse_day_hours,
    Weekdays: _days,
    date: _date,
    Mode: _mode,
    Threshold: _threshold,
    Ratio: _ratio,
}


@dataclass(frozen=True, slots=True)
class PolicyHead:
    """The policy's name and mode."""

    name: str = _key("", "Letters, digits, `.`, `_` and `-`, 64 at most; empty: the file's name without .toml.")
    mode: Mode = _key("shadow", "The strongest action: off, shadow, annotate, warn or reject.")


@dataclass(frozen=True, slots=True)
class When:
    """Which submissions the policy judges: all keys must match. Without this table it judges every submission."""

    partitions: Patterns = _key(NONE, "Shell patterns; of several requested partitions, one must match.")
    qos: Patterns = _key(NONE, "Shell patterns of the QOS.")
    accounts: Patterns = _key(NONE, "Shell patterns of the account.")
    users: Patterns = _key(NONE, "Shell patterns of the user's name.")
    groups: Patterns = _key(NONE, "Shell patterns; one of the user's Unix groups must match.")
    hours: Hours = _key(ALWAYS, 'Local time of day, "08:00-18:00"; "22:00-06:00" spans midnight.')
    weekdays: Weekdays = _key(EVERY_DAY, "Days of submission: mon, tue, wed, thu, fri, sat, sun.")
    from_: date = _key(FIRST_DAY, "First day of the policy, a TOML date: 2026-12-01.")
    until: date = _key(LAST_DAY, "Last day of the policy.")
    min_gpus: int = _key(0, "Minimum number of requested GPUs.")
    min_nodes: int = _key(0, "Minimum number of requested nodes; a request without a number counts as one.")


@dataclass(frozen=True, slots=True)
class TargetRule:
    """The thresholds of a target; a key that is not set has no effect."""

    warn: Threshold = _key(NOT_SET, 'Threshold of a warning: a probability over 0 and up to 1, or "model".')
    reject: Threshold = _key(NOT_SET, 'Threshold of a reject: a probability over 0 and up to 1, or "model".')
    basis: int = _key(3, "Minimum number of earlier jobs for a prediction from job history only (default for gpus: 2).")


@dataclass(frozen=True, slots=True)
class RejectBudget:
    """Limit of rejects per user."""

    rejects_per_user_per_day: int = _key(5, "Rejects per local day; then warnings instead. An array counts once.")


@dataclass(frozen=True, slots=True)
class Override:
    """Whether users can override a reject, with `--comment=gpuwaste:override=REASON`."""

    allowed: bool = _key(default=True, text="Whether an override is accepted; the text of a reject then names it.")
    per_user_per_day: int = _key(5, "Overrides per local day; further ones are rejected.")


@dataclass(frozen=True, slots=True)
class PolicyExemption:
    """Submissions that the policy never judges, although they match `[when]`. One match is enough."""

    users: Patterns = _key(NONE, "Shell patterns of the user's name.")
    accounts: Patterns = _key(NONE, "Shell patterns of the account.")
    groups: Patterns = _key(NONE, "Shell patterns of the user's Unix groups.")
    partitions: Patterns = _key(NONE, "Shell patterns; of several requested partitions, one is enough.")
    qos: Patterns = _key(NONE, "Shell patterns of the QOS.")
    names: Patterns = _key(NONE, "Shell patterns of the job's name.")


@dataclass(frozen=True, slots=True)
class RandomSample:
    """The share of rejects that is accepted at random: only these jobs show how often a reject is right."""

    pass_ratio: Ratio = _key(Ratio(0.05), "Share of rejects that is accepted and marked, 0 to 1.")


@dataclass(frozen=True, slots=True)
class Floor:
    """Minimum precision: below the floor the policy falls back to shadow mode."""

    precision: Ratio = _key(Ratio(0.5), "Minimum share of right warnings and rejects; 0: no floor.")
    min_verdicts: int = _key(50, "Minimum number of judged warnings and rejects; with fewer there is no floor.")


@dataclass(frozen=True, slots=True)
class TimeMin:
    """Sets --time-min, so that Slurm can start the job earlier with less time; only if this table exists."""

    ratio: Ratio = _key(Ratio(0.8), "Never less than this share of the time limit, nor than the predicted run time.")


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """Prints the expected start at sbatch, in mode warn and reject; only if this table exists. Needs the hub."""

    min_wait_minutes: int = _key(10, "No line if the job is expected to start sooner, in minutes.")


@dataclass(frozen=True, slots=True)
class RightSizeLines:
    """Prints smaller requests that past runs would have fitted, in mode warn and reject; only if this table exists."""

    lines: int = _key(1, "Most lines: a smaller GPU, less memory, a shorter limit, fewer CPUs, in this order.")


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy with all its tables; `file` is its path, "" for the built-in one."""

    policy: PolicyHead = field(default_factory=PolicyHead)
    when: When = field(default_factory=When)
    targets: Mapping[str, TargetRule] = field(default_factory=dict)
    budget: RejectBudget = field(default_factory=RejectBudget)
    override: Override = field(default_factory=Override)
    exempt: PolicyExemption = field(default_factory=PolicyExemption)
    sample: RandomSample = field(default_factory=RandomSample)
    floor: Floor = field(default_factory=Floor)
    time_min: TimeMin | None = None
    expected_start: ExpectedStart | None = None
    right_size: RightSizeLines | None = None
    file: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.policy.name

    @property
    def mode(self) -> Mode:
        """Its strongest action."""
        return self.policy.mode


TABLES: Final[Mapping[str, type]] = {
    "policy": PolicyHead,
    "when": When,
    "budget": RejectBudget,
    "override": Override,
    "exempt": PolicyExemption,
    "sample": RandomSample,
    "floor": Floor,
    "time_min": TimeMin,
    "expected_start": ExpectedStart,
    "right_size": RightSizeLines,
}

"""A policy file's tables and keys: typed, each declared once, with the text that the reference prints.

What a key holds is ready for use: patterns are compiled, hours are minutes of the day.
"""

# ruff: noqa: RUF009 - a key is declared by a call, and every default is immutable

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from gpuwaste.core.typed_toml import key as _key
from gpuwaste.core.verdict import Mode
from gpuwaste.policy.values import ALWAYS, EVERY_DAY, NONE, NOT_SET, Days, Hours, Patterns, Ratio, Threshold

GPUS: Final = "gpus"
PROBABILITIES: Final = ("failure", "timeout", "failure_or_cancel")  # targets that are a probability as they stand
QUANTITIES: Final = {"walltime": "time_limit", "memory": "memory"}  # target -> the kind of suggestion that it needs
TARGETS: Final = ("failure", "timeout", "failure_or_cancel", GPUS, "memory", "walltime")  # of equals the first is told
FIRST_DAY: Final = date.min
LAST_DAY: Final = date.max


@dataclass(frozen=True, slots=True)
class Head:
    """What the policy is called and how far it may go."""

    name: str = _key("", "Letters, digits, `.`, `_` and `-`, 64 at most; empty: the file's name without .toml.")
    mode: Mode = _key("shadow", "How far it may go: off, shadow, annotate, warn or reject.")


@dataclass(frozen=True, slots=True)
class When:
    """Which submissions it judges: all that is said has to hold. Without this table it judges every one."""

    partitions: Patterns = _key(NONE, "Shell patterns; of several partitions asked for, one has to match.")
    qos: Patterns = _key(NONE, "Shell patterns of the QOS.")
    accounts: Patterns = _key(NONE, "Shell patterns of the account.")
    users: Patterns = _key(NONE, "Shell patterns of the user's name.")
    groups: Patterns = _key(NONE, "Shell patterns of which one of the user's Unix groups has to match.")
    hours: Hours = _key(ALWAYS, 'Local time of day, "08:00-18:00"; "22:00-06:00" goes over midnight.')
    weekdays: Days = _key(EVERY_DAY, "Days of submission: mon, tue, wed, thu, fri, sat, sun.")
    from_: date = _key(FIRST_DAY, "First day on which it holds, a TOML date: 2026-12-01.")
    until: date = _key(LAST_DAY, "Last day on which it holds.")
    min_gpus: int = _key(0, "Least number of GPUs asked for.")
    min_nodes: int = _key(0, "Least number of nodes asked for; a request that does not say counts as one.")


@dataclass(frozen=True, slots=True)
class TargetRule:
    """From which number on a target warns or rejects; what is not said does neither."""

    warn: Threshold = _key(NOT_SET, 'Warn from here on: a probability over 0 and up to 1, or "model".')
    reject: Threshold = _key(NOT_SET, 'Reject from here on: a probability over 0 and up to 1, or "model".')
    basis: int = _key(3, "Least number of earlier jobs where history alone speaks (gpus: 2 where not said).")


@dataclass(frozen=True, slots=True)
class Budget:
    """How many rejects a user gets."""

    rejects_per_user_per_day: int = _key(5, "Rejects from local midnight on; above it he is warned. An array is one.")


@dataclass(frozen=True, slots=True)
class Override:
    """Whether a user may go on in spite of a reject, with `--comment=gpuwaste:override=REASON`."""

    allowed: bool = _key(default=True, text="Whether the override counts; it is told with each reject.")
    per_user_per_day: int = _key(5, "Overrides from local midnight on; above it the reject stands.")


@dataclass(frozen=True, slots=True)
class Exempt:
    """Who is never judged, though the policy holds for him. One match is enough."""

    users: Patterns = _key(NONE, "Shell patterns of the user's name.")
    accounts: Patterns = _key(NONE, "Shell patterns of the account.")
    groups: Patterns = _key(NONE, "Shell patterns of the user's Unix groups.")
    partitions: Patterns = _key(NONE, "Shell patterns; of several partitions asked for, one is enough.")
    qos: Patterns = _key(NONE, "Shell patterns of the QOS.")
    names: Patterns = _key(NONE, "Shell patterns of the job's name.")


@dataclass(frozen=True, slots=True)
class Sample:
    """Which share of rejects passes at random: only these jobs tell how often rejecting is right."""

    pass_ratio: Ratio = _key(Ratio(0.05), "Share of rejects that pass and are marked, 0 to 1.")


@dataclass(frozen=True, slots=True)
class Floor:
    """How good it has to be: below the floor it falls back to shadow by itself."""

    precision: Ratio = _key(Ratio(0.5), "Least share of its warnings and rejects that turned out right; 0: no floor.")
    min_verdicts: int = _key(50, "Judged warnings and rejects below which the precision says nothing.")


@dataclass(frozen=True, slots=True)
class TimeMin:
    """Sets --time-min, so that Slurm may start the job earlier with less time; only where this table is present."""

    ratio: Ratio = _key(Ratio(0.8), "Never less than this share of the time limit, nor than the run time expected.")


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy, whole; `file` is where it stands, "" for the built-in one."""

    policy: Head = field(default_factory=Head)
    when: When = field(default_factory=When)
    targets: Mapping[str, TargetRule] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    override: Override = field(default_factory=Override)
    exempt: Exempt = field(default_factory=Exempt)
    sample: Sample = field(default_factory=Sample)
    floor: Floor = field(default_factory=Floor)
    time_min: TimeMin | None = None
    file: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.policy.name

    @property
    def mode(self) -> Mode:
        """How far it may go."""
        return self.policy.mode


TABLES: Final[Mapping[str, type]] = {
    "policy": Head,
    "when": When,
    "budget": Budget,
    "override": Override,
    "exempt": Exempt,
    "sample": Sample,
    "floor": Floor,
    "time_min": TimeMin,
}

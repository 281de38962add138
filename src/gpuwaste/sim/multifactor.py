"""Priorities of priority/multifactor: its settings of slurm.conf, the parts that stay as a job waits, and their sum."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.core.units import WEEK_S, parse_duration_s
from gpuwaste.sim.compiled import in_place
from gpuwaste.slurm.accounting.tres_amounts import parse_weights
from gpuwaste.slurm.site.slurm_settings import enforced
from gpuwaste.slurm.site.slurm_values import truth

MULTIFACTOR: Final = "priority/multifactor"
FLAGS: Final = frozenset({
    "ACCRUE_ALWAYS", "CALCULATE_RUNNING", "DEPTH_OBLIVIOUS", "INCR_ONLY", "MAX_TRES", "NO_FAIR_TREE", "NO_NORMAL_ALL",
    "NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES", "SMALL_RELATIVE_TO_TIME", "FAIR_TREE",
})  # fmt: skip
RESETS: Final = ("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")
_NOT_NORMAL: Final = frozenset({"NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES"})
_PERIOD_S: Final = 300
_MAX_WEIGHT: Final = 2**32 - 1
_ABSENT: Final = frozenset({"", "(NULL)", "NONE", "N/A"})
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST = 4294967295.0


@dataclass(frozen=True, slots=True)
class PrioritySettings:
    """slurm.conf's settings of priorities, with the defaults of slurm.conf(5).

    `half_life_s` None means no decay. `limits`: whether QOS and association limits hold; `safe`: whether a job starts
    only if its full time limit fits them.
    """

    multifactor: bool = False
    weight_age: int = 0
    weight_assoc: int = 0
    weight_fair_share: int = 0
    weight_size: int = 0
    weight_partition: int = 0
    weight_qos: int = 0
    weight_tres: Mapping[str, float] = field(default_factory=dict)
    max_age_s: int = WEEK_S
    half_life_s: int | None = WEEK_S
    calc_period_s: int = _PERIOD_S
    favor_small: bool = False
    flags: frozenset[str] = frozenset()
    reset: str = "NONE"
    dampening: int = 1
    limits: bool = True
    safe: bool = False

    @property
    def fair_tree(self) -> bool:
        """Whether Fair Tree ranks users; else fair share is 2 to the power of -U/S."""
        return not self.flags & {"NO_FAIR_TREE", "DEPTH_OBLIVIOUS"}


def priority_settings(settings: Mapping[str, str]) -> PrioritySettings:
    """Read a cluster's settings, by the names of slurm.conf in any case.

    Limits hold where AccountingStorageEnforce is absent: only a model that was not read from a Slurm lacks it. Raises
    ConfigError, which names the setting and its value.
    """
    found = {name.lower(): text.strip() for name, text in settings.items()}
    read = _SettingsReader(found)
    enforce = enforced(found.get("accountingstorageenforce", "limits"))
    plugin = found.get("prioritytype", "priority/basic").lower()
    if plugin not in {MULTIFACTOR, "priority/basic"}:
        raise _bad("PriorityType", plugin, f"{MULTIFACTOR} or priority/basic")
    return PrioritySettings(
        multifactor=plugin == MULTIFACTOR,
        weight_age=read.whole("PriorityWeightAge"),
        weight_assoc=read.whole("PriorityWeightAssoc"),
        weight_fair_share=read.whole("PriorityWeightFairshare"),
        weight_size=read.whole("PriorityWeightJobSize"),
        weight_partition=read.whole("PriorityWeightPartition"),
        weight_qos=read.whole("PriorityWeightQOS"),
        weight_tres=read.weights("PriorityWeightTRES"),
        max_age_s=read.seconds("PriorityMaxAge", WEEK_S) or _MAX_WEIGHT,
        half_life_s=read.seconds("PriorityDecayHalfLife", WEEK_S),
        calc_period_s=read.period("PriorityCalcPeriod"),
        favor_small=read.truth("PriorityFavorSmall"),
        flags=read.flags("PriorityFlags"),
        reset=read.reset("PriorityUsageResetPeriod"),
        dampening=max(1, read.whole("FairShareDampeningFactor", 1)),
        limits="limits" in enforce,
        safe="safe" in enforce,
    )


class _SettingsReader:
    """Settings by lower-case name; each method reads one kind of value."""

    def __init__(self, found: Mapping[str, str]) -> None:
        self._found = found

    def _text(self, name: str) -> str | None:
        text = self._found.get(name.lower(), "")
        return None if text.upper() in _ABSENT else text

    def whole(self, name: str, default: int = 0) -> int:
        """Read a whole number, 0 to 2^32 - 1."""
        text = self._text(name)
        if text is None:
            return default
        if not (
            text.isascii() and text.isdigit() and len(text) < len(str(_MAX_WEIGHT)) + 1 and int(text) <= _MAX_WEIGHT
        ):
            raise _bad(name, text, f"a whole number up to {_MAX_WEIGHT}")
        return int(text)

    def seconds(self, name: str, default: int) -> int | None:
        """Read a time as seconds; None for one without an end or of zero."""
        text = self._text(name)
        if text is None:
            return default
        try:
            return parse_duration_s(text) or None
        except ParseError:
            raise _bad(name, text, "a time such as 7-0, 12:00:00 or minutes") from None

    def period(self, name: str) -> int:
        """Read a period, a minute at least, as in slurmctld."""
        seconds = self.seconds(name, _PERIOD_S)
        if seconds is None:
            raise _bad(name, self._found[name.lower()], "a time of one minute or more")
        return max(60, seconds)

    def truth(self, name: str) -> bool:
        """Read yes or no."""
        text = self._text(name) or "no"
        found = truth(text)
        if found is None:
            raise _bad(name, text, "yes or no")
        return found

    def flags(self, name: str) -> frozenset[str]:
        """Read the flags; NO_NORMAL_ALL sets its four."""
        words = {word.strip().upper() for word in (self._text(name) or "").split(",")} - {""}
        unknown = sorted(words - FLAGS)
        if unknown:
            raise _bad(name, unknown[0], f"flags of slurm.conf(5): {', '.join(sorted(FLAGS))}")
        return frozenset(words | _NOT_NORMAL if "NO_NORMAL_ALL" in words else words)

    def reset(self, name: str) -> str:
        """Read when usage is set to zero."""
        text = (self._text(name) or "NONE").upper()
        if text not in RESETS:
            raise _bad(name, text, f"one of {', '.join(RESETS)}")
        return text

    def weights(self, name: str) -> Mapping[str, float]:
        """Read weights by TRES."""
        text = self._text(name)
        try:
            return parse_weights(text or "")
        except ParseError as error:
            raise ConfigError(f"{name}: {error}") from None


def _bad(name: str, text: str, expected: str) -> ConfigError:
    return ConfigError(f"{name}={text[:60]!r}: expected {expected}; correct it in slurm.conf or the machine file")


class Weighted(NamedTuple):
    """Weighted parts of n jobs' priorities that do not change while they wait, for compiled code; see priority()."""

    assoc: Floats
    size: Floats
    partition: Floats
    qos: Floats
    tres: Floats
    nice: Floats
    weight_age: float
    weight_fair_share: float
    max_age_s: float


class PriorityJobs(NamedTuple):
    """What priorities depend on, n jobs.

    `limit_s` [n] the time limit, `amounts` and `available` [n, TRES] what a job requests and what its partition has,
    `partition`, `qos`, `assoc` [n] the priorities (PriorityJobFactor, Priority) that it gets from there.
    """

    nodes: Ints
    cpus: Ints
    limit_s: Ints
    amounts: Floats
    available: Floats
    partition: Floats
    qos: Floats
    assoc: Floats
    nice: Floats


class Norms(NamedTuple):
    """What factors are normalised by: nodes and CPUs of the cluster, the largest priority of each kind."""

    nodes: int
    cpus: int
    max_partition: float
    max_qos: float
    max_assoc: float


def size_factor(jobs: PriorityJobs, norms: Norms, settings: PrioritySettings) -> Floats:
    """Return the size factor [n], 0 to 1: large jobs first, or small ones with PriorityFavorSmall.

    The mean of the part of nodes and of CPUs; with SMALL_RELATIVE_TO_TIME CPUs by the minute of the limit.
    """
    if "SMALL_RELATIVE_TO_TIME" in settings.flags:
        cpus = np.maximum(jobs.nodes * (norms.cpus / norms.nodes), jobs.cpus)
        by_cpus: Floats = cpus / np.maximum(1, -(-jobs.limit_s // 60)) / norms.cpus
        found: Floats = np.clip(1.0 - by_cpus if settings.favor_small else by_cpus, 0.0, 1.0)
        return found
    if settings.favor_small:
        by_nodes, by_cpus = (norms.nodes - jobs.nodes) / norms.nodes, (norms.cpus - jobs.cpus) / norms.cpus
    else:
        by_nodes, by_cpus = jobs.nodes / norms.nodes, jobs.cpus / norms.cpus
    return np.clip(np.where(jobs.cpus > 0, (by_nodes + by_cpus) / 2, by_nodes), 0.0, 1.0)


def _normal(values: Floats, most: float, *, normal: bool) -> Floats:
    return values if not normal else values / most if most > 0 else np.zeros(len(values))


def weighted(jobs: PriorityJobs, norms: Norms, settings: PrioritySettings, weights: Floats) -> Weighted:
    """Return the parts of n jobs; `weights` [TRES] are PriorityWeightTRES as a row of the same columns."""
    flags = settings.flags
    parts = jobs.amounts
    if "NO_NORMAL_TRES" not in flags:
        parts = np.divide(jobs.amounts, jobs.available, out=np.zeros(jobs.amounts.shape), where=jobs.available > 0)
    part = _normal(jobs.partition, norms.max_partition, normal="NO_NORMAL_PART" not in flags)
    qos = _normal(jobs.qos, norms.max_qos, normal="NO_NORMAL_QOS" not in flags)
    assoc = _normal(jobs.assoc, norms.max_assoc, normal="NO_NORMAL_ASSOC" not in flags)
    return Weighted(
        assoc=assoc * settings.weight_assoc,
        size=size_factor(jobs, norms, settings) * settings.weight_size,
        partition=part * settings.weight_partition,
        qos=qos * settings.weight_qos,
        tres=(parts * weights).sum(axis=1),
        nice=jobs.nice,
        weight_age=float(settings.weight_age),
        weight_fair_share=float(settings.weight_fair_share),
        max_age_s=float(settings.max_age_s),
    )


@in_place
def priority(parts: Weighted, job: int, age_s: float, fair_share: float) -> int:
    """Return the priority of a job that has waited `age_s` since it became eligible, 1 to 2^32 - 1.

    The sum is truncated, as slurmctld's is; its terms are added in slurmctld's order.
    """
    age = min(1.0, max(0.0, age_s) / parts.max_age_s) * parts.weight_age
    found = age + parts.assoc[job] + fair_share * parts.weight_fair_share + parts.size[job] + parts.partition[job]
    found = found + parts.qos[job] + parts.tres[job] - parts.nice[job]
    return int(min(max(found, 1.0), _MOST))

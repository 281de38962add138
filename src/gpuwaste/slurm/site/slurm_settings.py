"""The settings of slurm.conf that decide when a job starts, as `scontrol show config` prints them."""

from collections.abc import Callable, Mapping
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import words_of
from gpuwaste.core.units import format_duration
from gpuwaste.slurm.site import slurm_values as values

_Kind = Callable[[str, str], str]
_BASIC: Final = "priority/basic"


def _text(value: str, _: str) -> str:
    return "" if value.lower() in {"(null)", "none"} else value


def _upper(value: str, _: str) -> str:
    return value.upper()


def _word(value: str, _: str) -> str:
    return value


def _flag(value: str, name: str) -> str:
    found = values.truth(value)
    if found is None:
        raise ParseError(f"{name}={words_of(value, 40)}: expected yes or no")
    return "Yes" if found else "No"


def _number(value: str, name: str) -> str:
    return str(values.whole(value, name))


def _amount(value: str, name: str) -> str:
    found = values.limit(value, name)
    return "UNLIMITED" if not found else str(found)


def _duration(value: str, name: str) -> str:
    try:
        found = values.seconds(value)
    except ParseError as error:
        raise ParseError(f"{name}: {error}") from error
    return "UNLIMITED" if found is None else format_duration(found)


def _in(unit: str) -> _Kind:
    def read(value: str, name: str) -> str:
        bare = value.removesuffix(unit).strip()
        return "UNLIMITED" if values.limit(bare, name) is None else f"{values.whole(bare, name)} {unit}"

    return read


KNOWN: Final[Mapping[str, tuple[str | None, _Kind]]] = {
    "AccountingStorageEnforce": ("none", _word),
    "CompleteWait": ("0 sec", _in("sec")),
    "DefMemPerCPU": (None, _amount),
    "DefMemPerNode": ("UNLIMITED", _amount),
    "EnforcePartLimits": ("NO", _upper),
    "FairShareDampeningFactor": ("1", _number),
    "JobRequeue": ("1", _number),
    "KillWait": ("30 sec", _in("sec")),
    "MaxArraySize": ("1001", _number),
    "MaxJobCount": ("10000", _number),
    "MaxMemPerCPU": (None, _amount),
    "MaxMemPerNode": ("UNLIMITED", _amount),
    "OverTimeLimit": ("0 min", _in("min")),
    "PreemptExemptTime": ("00:00:00", _duration),
    "PreemptMode": ("OFF", _upper),
    "PreemptType": ("preempt/none", _word),
    "PriorityCalcPeriod": ("00:05:00", _duration),
    "PriorityDecayHalfLife": ("7-00:00:00", _duration),
    "PriorityFavorSmall": ("No", _flag),
    "PriorityFlags": ("", _text),
    "PriorityMaxAge": ("7-00:00:00", _duration),
    "PriorityType": (_BASIC, _word),
    "PriorityUsageResetPeriod": ("NONE", _upper),
    "PriorityWeightAge": ("0", _number),
    "PriorityWeightAssoc": ("0", _number),
    "PriorityWeightFairShare": ("0", _number),
    "PriorityWeightJobSize": ("0", _number),
    "PriorityWeightPartition": ("0", _number),
    "PriorityWeightQOS": ("0", _number),
    "PriorityWeightTRES": ("", _text),
    "SchedulerParameters": ("", _text),
    "SchedulerTimeSlice": ("30 sec", _in("sec")),
    "SchedulerType": ("sched/backfill", _word),
    "SelectType": ("select/cons_tres", _word),
    "SelectTypeParameters": ("CR_CORE_MEMORY", _upper),
}
"""By name: the default (slurm.conf(5) of 22.05; None: printed only where set) and the print format."""
_NAMES: Final = {name.lower(): name for name in KNOWN}
_INSTEAD: Final = {"DefMemPerCPU": "DefMemPerNode", "MaxMemPerCPU": "MaxMemPerNode"}


def printed(name: str, value: str) -> tuple[str, str]:
    """Return a setting in Slurm's spelling, and its value as scontrol prints it; an unknown one unchanged.

    Raises ParseError.
    """
    known = _NAMES.get(name.lower())
    return (name, value) if known is None else (known, KNOWN[known][1](value.strip(), known))


def enforced(text: str) -> frozenset[str]:
    """Return the words of AccountingStorageEnforce with those that they imply; the order of limits needs them."""
    words = {word.strip().lower() for word in text.split(",")} - {""}
    limits = {"limits", "associations"} if words & {"safe", "all", "1"} else set()
    return frozenset(words | limits | ({"qos"} if "all" in words else set()))


def decisive(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of KNOWN, with defaults for those not set, in the order of KNOWN. Raises ParseError.

    With priority/basic the settings of priority/multifactor have no effect, and scontrol prints none of them.
    """
    given = dict(printed(name, value) for name, value in settings.items() if name.lower() in _NAMES)
    basic = given.get("PriorityType", _BASIC) == _BASIC
    found = {}
    for name, (default, _) in KNOWN.items():
        if basic and name.startswith("Priority") and name != "PriorityType":
            continue
        if any(name == other and instead in given for instead, other in _INSTEAD.items()):
            continue
        value = given.get(name, default)
        if value is not None:
            found[name] = value
    return found

"""Words such as `lublin:jobs=1000,seed=2` and `stretch=1.2,seed=3`: a name, and numbers that have names, within bounds.

Generators and steps declare their numbers as Parameter; user input is checked here for all of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import UsageError

_LONGEST: Final = 400  # characters of words; every name and number of ours is far shorter
_MOST: Final = 32  # numbers in them
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MOST_SEEDS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that a generator or a step takes: its default, its bounds, and its meaning."""

    default: float
    least: float
    most: float
    about: str
    whole: bool = False

    def shown(self) -> str:
        """Return its bounds and its default in words."""
        kind = "whole number" if self.whole else "number"
        return f"{kind} from {_plain(self.least)} to {_plain(self.most)}, default {_plain(self.default)}"


def _plain(number: float) -> str:
    """Return a number without an exponent."""
    return f"{number:,.10g}"


SEED: Final = Parameter(1, 0, _MOST_SEEDS, "random seed", whole=True)


@dataclass(frozen=True, slots=True)
class NamedParameters:
    """What was chosen by name, with all its numbers."""

    name: str
    values: Mapping[str, float]

    def seeded(self, seed: int) -> "NamedParameters":
        """Return the same with another seed, itself where it has none."""
        return NamedParameters(self.name, {**self.values, "seed": seed}) if "seed" in self.values else self

    def later(self, steps: int) -> "NamedParameters":
        """Return the same with a seed increased by that much, itself where it has none."""
        return self.seeded((int(self.values.get("seed", 0)) + steps) % (_MOST_SEEDS + 1))

    def text(self) -> str:
        """Return it as it could be written: `lublin:jobs=1000,seed=2`, `thin=0.8,seed=1`."""
        numbers = ",".join(f"{key}={value:.10g}" for key, value in self.values.items())
        return numbers if self.name in self.values else f"{self.name}:{numbers}"


def read_named(words: str, known: Mapping[str, Mapping[str, Parameter]], option: str) -> NamedParameters:
    """Read `NAME`, `NAME:key=value,...` or `NAME=value,key=value,...`, where NAME=value is its first number.

    `known`: the numbers of each name. Raises UsageError, which begins with `option`.
    """
    if len(words) > _LONGEST:
        raise UsageError(f"{option}: {len(words)} characters: expected at most {_LONGEST}")
    parts = re.split(r"[:,]", words.strip(), maxsplit=_MOST)
    name, _, first = parts[0].partition("=")
    if name not in known:
        raise UsageError(f"{option} {name[:40]!r}: expected one of {', '.join(known)}")
    given = [part for part in parts[1:] if part]
    if first:
        given.insert(0, f"{next(iter(known[name]))}={first}")
    return NamedParameters(name, read_values(given, known[name], f"{option} {name}"))


def read_values(given: list[str], declared: Mapping[str, Parameter], where: str) -> dict[str, float]:
    """Return a value for each declared number, from words key=value. Raises UsageError, which begins with `where`."""
    values = {key: parameter.default for key, parameter in declared.items()}
    seen = set()
    for part in given:
        key, _, value = part.partition("=")
        if key not in declared:
            raise UsageError(
                f"{where}: {key[:40]!r}: expected {', '.join(declared)}, as in {next(iter(declared))}=VALUE"
            )
        if key in seen:
            raise UsageError(f"{where}: {key} is given twice")
        seen.add(key)
        values[key] = _number(value, declared[key], f"{where}: {key}={value[:20]!r}")
    return values


def is_name(text: str) -> bool:
    """Whether a text may be the name of a generator, a step or a number."""
    return _NAME.fullmatch(text) is not None


def _number(text: str, parameter: Parameter, where: str) -> float:
    try:
        value = float(text) if len(text) <= _LONGEST else float("nan")
    except ValueError:
        value = float("nan")
    if not parameter.least <= value <= parameter.most or (parameter.whole and value != int(value)):
        raise UsageError(f"{where}: expected a {parameter.shown()}")
    return value

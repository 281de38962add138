"""A study: a TOML file that names an experiment, what is fixed, what is varied, and seeds; and its cases.

    title = "How much does backfill gain?"
    experiment = "simulate"
    seeds = 10                       # 1 to 10, or a list of seeds
    [fixed]
    schedulers = ["fcfs", "easy"]
    [grid]
    generate = ["lublin:jobs=5000", "lublin:jobs=5000,load=1.2"]

Each combination of the grid's values with each seed is a case, and a case is known by a hash of what it does: a study
that is changed later keeps the results of the cases that are still in it.
"""

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from gpuwaste.core.errors import UsageError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.version import own_version
from gpuwaste.sim import experiments
from gpuwaste.sim.parameters import is_name

MOST_CASES: Final = 100_000
_MOST_B: Final = 1_000_000  # of a study's file
_KEYS: Final = ("title", "experiment", "seeds", "timeout_s", "fixed", "grid")
_LARGEST_SEED: Final = 2**31 - 1
_TIMEOUT_S: Final = 3600.0
_LONGEST_TIMEOUT_S: Final = 30 * 86_400.0


class Experiment(Protocol):
    """A file of experiments/."""

    TITLE: str
    PARAMETERS: Mapping[str, Any]
    MEASURES: tuple[str, ...]

    def rows(self, values: Mapping[str, Any], seed: int, folder: Path) -> list[dict[str, Any]]:
        """Return the results of one case."""
        ...


EXPERIMENTS: Final[ModuleRegistry[Experiment]] = ModuleRegistry(experiments, "TITLE", "PARAMETERS", "MEASURES", "rows")


@dataclass(frozen=True, slots=True)
class SweepCase:
    """One combination with one seed; `values` are all parameters of the experiment. It can be pickled."""

    experiment: str
    values: Mapping[str, Any]
    seed: int
    folder: Path

    @property
    def id(self) -> str:
        """Return the hash of what the case does, by this version of gpuwaste."""
        text = json.dumps([own_version(), self.experiment, dict(self.values), self.seed], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def text(self) -> str:
        """Return the case in one line."""
        return ", ".join([*(f"{key}={value!s:.60}" for key, value in self.values.items()), f"seed={self.seed}"])


@dataclass(frozen=True, slots=True)
class SweepStudy:
    """The content of a file; `timeout_s` bounds one case, `varied` are the names in its grid."""

    title: str
    experiment: str
    timeout_s: float
    varied: tuple[str, ...]
    cases: tuple[SweepCase, ...]


def read_study(path: Path) -> SweepStudy:
    """Read a study. Raises UsageError with the file and the key that is wrong."""
    raw = _toml(path)
    if unknown := [key for key in raw if key not in _KEYS]:
        raise UsageError(f"{path}: {unknown[0][:40]!r}: expected {', '.join(_KEYS)}")
    name = raw.get("experiment", "simulate")
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise UsageError(f"{path}: experiment {str(name)[:40]!r}: expected one of {', '.join(EXPERIMENTS)}")
    declared = EXPERIMENTS[name].PARAMETERS
    fixed, grid = _section(raw, "fixed", declared, path), _section(raw, "grid", declared, path)
    for key, values in grid.items():
        if not isinstance(values, list) or not values or key in fixed:
            raise UsageError(f"{path}: grid.{key}: expected a list of values, and the key not in [fixed] too")
    if missing := [key for key, value in declared.items() if value is None and key not in {**fixed, **grid}]:
        raise UsageError(f"{path}: {missing[0]} is not set: {name} needs it in [fixed] or [grid]")
    seeds = _seeds(raw.get("seeds", 1), path)
    if (count := math.prod(len(values) for values in grid.values()) * len(seeds)) > MOST_CASES:
        raise UsageError(f"{path}: {count:,} cases: expected at most {MOST_CASES:,}")
    cases = []
    for chosen in itertools.product(*grid.values()):
        values = {**declared, **fixed, **dict(zip(grid, chosen, strict=True))}
        _of_their_kinds(values, declared, path)
        cases += [SweepCase(name, values, seed, path.resolve().parent) for seed in seeds]
    return SweepStudy(str(raw.get("title", path.stem))[:200], name, _timeout(raw, path), tuple(grid), tuple(cases))


def _toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            data = stream.read(_MOST_B + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > _MOST_B:
        raise UsageError(f"{path}: more than {_MOST_B:,} bytes: not a study file")
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from error


def _section(raw: Mapping[str, Any], name: str, declared: Mapping[str, Any], path: Path) -> dict[str, Any]:
    section = raw.get(name, {})
    if not isinstance(section, dict):
        raise UsageError(f"{path}: {name}: expected a table")
    if unknown := [key for key in section if key not in declared]:
        shown = unknown[0] if is_name(unknown[0]) else f"{unknown[0]!r:.40}"
        raise UsageError(f"{path}: {name}.{shown}: expected {', '.join(declared)}")
    return section


def _of_their_kinds(values: Mapping[str, Any], declared: Mapping[str, Any], path: Path) -> None:
    """Raise UsageError unless each value is of its default's kind."""
    for key, value in values.items():
        default = declared[key]
        kinds = (int, float) if isinstance(default, float) else type(default)
        mixed = isinstance(default, list) and isinstance(value, list) and not _alike(value, default)
        if default is not None and (not isinstance(value, kinds) or isinstance(value, bool) or mixed):
            raise UsageError(f"{path}: {key}={value!r:.60}: expected a value like {default!r}")


def _alike(values: list[Any], default: list[Any]) -> bool:
    """Whether all values are of the kind of the default's, texts where it has none."""
    kind = type(default[0]) if default else str
    return all(type(each) is kind for each in values)


def _seeds(raw: Any, path: Path) -> list[int]:
    seeds = list(range(1, raw + 1)) if type(raw) is int and 0 < raw <= MOST_CASES else raw
    valid = (
        isinstance(seeds, list) and seeds and all(type(each) is int and 0 <= each <= _LARGEST_SEED for each in seeds)
    )
    if not valid:
        raise UsageError(f"{path}: seeds={raw!r:.60}: expected a number, or a list of whole numbers")
    return list(dict.fromkeys(seeds))


def _timeout(raw: Mapping[str, Any], path: Path) -> float:
    value = raw.get("timeout_s", _TIMEOUT_S)
    if type(value) not in {int, float} or not 0 < value <= _LONGEST_TIMEOUT_S:
        raise UsageError(f"{path}: timeout_s={value!r:.40}: expected seconds up to {_LONGEST_TIMEOUT_S:g}")
    return float(value)

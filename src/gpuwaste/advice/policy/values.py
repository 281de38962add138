"""What a policy's keys hold: patterns, hours, days, thresholds and ratios, each with the reading of its TOML."""

import fnmatch
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from gpuwaste.core.day_hours import DAY_MINUTES, Hours, parse_day_hours
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import Reader, nearest
from gpuwaste.jobs.verdict import MODES, Mode

MODEL: Final = "model"
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MAX_PATTERNS: Final = 10_000
_MAX_PATTERN: Final = 256


class Patterns:
    """Shell patterns (`*`, `?`, `[...]`), upper and lower case told apart; false where there are none."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = tuple(texts)
        self._match = re.compile("|".join(fnmatch.translate(text) for text in self.texts)).match

    def __bool__(self) -> bool:
        return bool(self.texts)

    def match(self, value: str) -> bool:
        """Tell whether one of them matches the whole value."""
        return bool(self.texts) and self._match(value) is not None

    def match_any(self, values: Iterable[str]) -> bool:
        """Tell whether one of them matches one of the values."""
        return bool(self.texts) and any(self._match(value) for value in values)

    def __repr__(self) -> str:
        return f"[{', '.join(self.texts)}]"


@dataclass(frozen=True, slots=True)
class Weekdays:
    """Days of the week, 0 for Monday."""

    numbers: frozenset[int]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A probability, or the model's own operating point (`model`), or nothing: never reached."""

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

"""SiteTariff: the tariff in force, from section [energy] and its CSV file, read again when the file changes."""

import math
import threading
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.core.site_files import WatchedFiles, csv_rows, csv_text
from gpuwaste.core.typed_toml import read_data
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.energy.tariff import EnergyPrice, Tariff

MAX_B: Final = 16 << 20
MAX_HOURS: Final = 200_000  # 22 years
_HOUR: Final = "hour"
_BOUNDS: Final = {"price_per_kwh": (-1e6, 1e6), "g_co2e_per_kwh": (0.0, 1e5)}
_MAX_PUE: Final = 10.0
_MAX_CURRENCY: Final = 8
_WHAT_TO_DO: Final = "see docs/how-to/energy.md"
_LOOK_US: Final = 60_000_000
_NONE: Final = Tariff()
_REJECTED: Final = log_event.error(
    "tariff-rejected: cannot use the prices of energy: {error}; {follows}",
    "`gpuwaste config check` prints the same error. The hub tries again within a minute of the file's next change.",
)

_ENERGY: Final = tuple(f"energy.{field.name}" for field in fields(EnergyConfig))


def read_tariff(config: EnergyConfig) -> Tariff:
    """Return the tariff of a site. Raises ParseError naming the key or the line of the file, and what to do."""
    if not 1 <= config.pue <= _MAX_PUE:
        raise ParseError(f"[energy] pue {config.pue:g}: set it to 1 to {_MAX_PUE:g}, 1 for only the GPUs' energy")
    if not 0 < len(config.currency) <= _MAX_CURRENCY or not config.currency.isprintable():
        raise ParseError(f"[energy] currency {config.currency[:20]!r}: write a name of 1 to {_MAX_CURRENCY} characters")
    for name, (_, most) in _BOUNDS.items():
        if getattr(config, name) > most:
            raise ParseError(f"[energy] {name} {getattr(config, name):g}: write {most:g} at most")
    flat = EnergyPrice(config.price_per_kwh or None, config.g_co2e_per_kwh or None)
    if not config.hours_file:
        return Tariff(flat, config.pue, config.currency)
    path = Path(config.hours_file)
    try:
        data = read_data(path, MAX_B, "a tariff by hour")
    except ConfigError as error:
        raise ParseError(f"[energy] hours_file: {error}") from error
    names, hours = parse_hours(data, f"[energy] hours_file: {path}")
    return Tariff(
        flat, config.pue, config.currency, hours,
        priced_by_hour="price_per_kwh" in names, carbon_by_hour="g_co2e_per_kwh" in names,
    )  # fmt: skip


def parse_hours(data: bytes, where: str) -> tuple[frozenset[str], dict[int, EnergyPrice]]:
    """Return the names of the value columns, and the rates by the UTC second at which each hour begins.

    An empty cell is an unknown value. Raises ParseError with the line.
    """
    text = csv_text(data, where)
    if "\0" in text:
        raise ParseError(f"{where}: a binary file: expected CSV, {_WHAT_TO_DO}")
    if text.strip() and not text.endswith("\n"):
        raise ParseError(f"{where}: the last line has no newline: the file is incomplete, write it again")
    rows = csv_rows(text, where, f"expected CSV, {_WHAT_TO_DO}")
    _, header = next(rows, (1, []))
    names = [cell.strip() for cell in header]
    values = [name for name in names if name in _BOUNDS]
    if _HOUR not in names or not values or len(set(names)) < len(names) or set(names) - {_HOUR, *_BOUNDS}:
        raise ParseError(f"{where}: line 1: expected the columns hour, price_per_kwh, g_co2e_per_kwh: {_WHAT_TO_DO}")
    found: dict[int, tuple[int, EnergyPrice]] = {}
    for line, row in rows:
        place = f"{where}: line {line}"
        if len(row) != len(names):
            raise ParseError(f"{place}: expected {len(names)} fields separated by commas, found {len(row)}")
        cells = dict(zip(names, row, strict=True))
        hour = _hour(cells[_HOUR].strip(), place)
        if hour in found:
            raise ParseError(f"{place}: the same hour in UTC as line {found[hour][0]}: remove one of them")
        if len(found) >= MAX_HOURS:
            raise ParseError(f"{place}: more than {MAX_HOURS} hours: remove those of years that no report asks for")
        found[hour] = line, EnergyPrice(**{name: _value(name, cells[name].strip(), place) for name in values})
    if not found:
        raise ParseError(f"{where}: no hour in it: write a line for each hour, or empty hours_file")
    return frozenset(values), {hour: rate for hour, (_, rate) in found.items()}


def _hour(text: str, place: str) -> int:
    """Return when an hour begins, UTC seconds; local time needs an offset, since daylight saving repeats an hour."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise ParseError(f"{place}: {text[:40]!r} is no time: expected such as 2026-03-29T01:00:00Z") from error
    if instant.tzinfo is None:
        raise ParseError(f"{place}: {text[:40]!r} has no offset to UTC, and is two hours in autumn: add Z or +01:00")
    try:
        seconds = int(instant.astimezone(UTC).timestamp())
    except OverflowError as error:
        raise ParseError(f"{place}: {text[:40]!r} is out of range") from error
    if seconds % HOUR_S or instant.microsecond:
        raise ParseError(f"{place}: {text[:40]!r} is not the beginning of an hour in UTC: write one line for each hour")
    return seconds


def _value(name: str, text: str, place: str) -> float | None:
    if not text:
        return None
    least, most = _BOUNDS[name]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise ParseError(f"{place}: {name} {text[:40]!r}: expected a number from {least:g} to {most:g}, such as 0.25")
    return value


class SiteTariff(Part):
    """The tariff in force. Thread-safe."""

    def __init__(self, config: EnergyConfig, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._use(config, _NONE)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(Config).energy, parts.get(HostPorts).clock)

    @property
    def reloads(self) -> Reloads:
        """The energy tariff."""
        return {_ENERGY: lambda c: self.use(c.energy)}

    def use(self, config: EnergyConfig) -> None:
        """Use another section [energy]."""
        with self._lock:
            self._use(config, self._file.content)

    def current(self) -> Tariff:
        """Return the tariff in force; checks the file for changes once a minute."""
        with self._lock:
            if self._clock.mono_us() >= self._next_us:
                self._look()
            return self._file.content

    def _use(self, config: EnergyConfig, tariff: Tariff) -> None:
        path = Path(config.hours_file) if config.hours_file else None
        self._file = WatchedFiles(path, lambda: read_tariff(config), tariff, self._rejected)
        self._look()

    def _look(self) -> None:
        self._next_us = self._clock.mono_us() + _LOOK_US
        self._file.refresh()

    def _rejected(self, error: str) -> None:
        none = self._file.content is _NONE
        follows = "reports have kilowatt-hours and no costs" if none else "the earlier prices stay in force"
        _REJECTED.log(error=error, follows=follows)

"""SiteTariff: the tariff in force, read again when its file changes; a file that cannot be used changes nothing."""

import threading
from dataclasses import fields
from pathlib import Path
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ParseError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.energy.tariff import Tariff
from gpuwaste.ledger.energy.tariff_file import read_tariff

_LOOK_US: Final = 60_000_000
_REJECTED: Final = log_event.error(
    "tariff-rejected: cannot use the prices of energy: {error}; {follows}",
    "`gpuwaste config check` prints the same error. The hub tries again within a minute of the file's next change.",
)

_ENERGY: Final = tuple(f"energy.{field.name}" for field in fields(EnergyConfig))


class SiteTariff(Part):
    """For any thread."""

    def __init__(self, config: EnergyConfig, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tariff = Tariff()
        self._read_once = False
        self._next_us = 0
        self.use(config)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(Config).energy, parts.get(HostPorts).clock)

    @property
    def reloads(self) -> Reloads:
        """What energy costs."""
        return {_ENERGY: lambda c: self.use(c.energy)}

    def use(self, config: EnergyConfig) -> None:
        """Take another section [energy]."""
        with self._lock:
            self._config = config
            self._read()

    def current(self) -> Tariff:
        """Return the tariff in force; looks for a change of the file once a minute."""
        with self._lock:
            if self._config.hours_file and self._clock.mono_us() >= self._next_us:
                self._next_us = self._clock.mono_us() + _LOOK_US
                if self._seen != _state(self._config):
                    self._read()
            return self._tariff

    def _read(self) -> None:
        self._seen = _state(self._config)
        self._next_us = self._clock.mono_us() + _LOOK_US
        try:
            self._tariff, self._read_once = read_tariff(self._config), True
        except ParseError as error:
            none = "reports have kilowatt-hours and no costs"
            _REJECTED.log(error=error, follows="the earlier prices stay in force" if self._read_once else none)


def _state(config: EnergyConfig) -> tuple[int, int, int] | None:
    """Return what changes with the file; None where it cannot be looked at."""
    if not config.hours_file:
        return None
    try:
        found = Path(config.hours_file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino

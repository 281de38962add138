"""SiteTariff: the tariff in force, read again when its file changes; a file that cannot be used changes nothing."""

import threading
from dataclasses import fields
from pathlib import Path
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.core.site_files import WatchedFiles
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.energy.tariff import Tariff
from gpuwaste.ledger.energy.tariff_file import read_tariff

_LOOK_US: Final = 60_000_000
_NONE: Final = Tariff()
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
        self._use(config, _NONE)

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
            self._use(config, self._file.content)

    def current(self) -> Tariff:
        """Return the tariff in force; looks for a change of the file once a minute."""
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

"""RAPL: the energy counters of a node's CPU packages, from the kernel's powercap tree. AMD CPUs have the same files.

A package's counter (`intel-rapl:N/energy_uj`, microjoules) covers cores, caches and memory controllers, not DRAM. It
wraps to 0 after `max_energy_range_uj`. Only root may read it (CVE-2020-8694) unless a site gives it to the agent's
group (docs/how-to/energy.md).
"""

import os
import re
from itertools import islice
from pathlib import Path
from typing import Final

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import CollectorSettings
from gpuwaste.agent.readings import PackageReading
from gpuwaste.core.clock import Clock

KIND: Final = "package"
TREE: Final = "class/powercap"  # below /sys
COUNTER: Final = "energy_uj"
_DOMAIN: Final = re.compile(r"intel-rapl:\d{1,4}", re.ASCII)  # not intel-rapl:0:0, a part of one, nor intel-rapl-mmio
_PACKAGE: Final = re.compile(r"package-\d{1,4}(?:-die-\d{1,4})?", re.ASCII)  # not psys: the board, packages included
_NUMBER: Final = re.compile(r"\d{1,20}", re.ASCII)  # 64 bits
_CPUS: Final = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_MAX_B: Final = 64  # of a counter's file
_MAX_CPUS_B: Final = 4096
_MAX_ENTRIES: Final = 4096
_MAX_DOMAINS: Final = 256
_MAX_CPUS: Final = 65_536
_MAX_W: Final = 1000.0  # of one package: twice the power of the largest one
_MOVES_S: Final = 0.5  # the CPU counts every millisecond, and always draws some power
_UJ: Final = 1e6
_WHAT_TO_DO: Final = "let the agent's group read it (docs/how-to/energy.md)"


def create(settings: CollectorSettings) -> "RaplCollector":
    """Create the collector; it reads nothing before the first reading."""
    return RaplCollector(settings.sys_root, settings.clock)


class RaplCollector:
    """Adds up the counters of all packages; a single wrap-around is handled, a wait that may hide two is not."""

    name = "rapl"

    def __init__(self, sys_root: Path, clock: Clock) -> None:
        self._root = sys_root / TREE
        self._online = sys_root / "devices" / "system" / "cpu" / "online"
        self._clock = clock
        self._last: dict[str, int] = {}  # microjoules by domain
        self._last_us = 0
        self._total_uj = 0
        self._generation = 0

    def read(self) -> PackageReading:
        """Return the energy of all packages since the generation began. Raises CollectorError where one cannot be read.

        A counter that does not count is an error: the energy of its package is unknown, not 0.

        Another set of packages, a counter that grows faster than any CPU can draw, or a wait in which one may have
        wrapped twice begins a new generation: the energy since the reading before is then unknown.
        """
        now_us = self._clock.mono_us()
        limits_uj = {domain: range_uj(self._root / domain) for domain in packages(self._root)}
        counters = {domain: _count(self._root / domain / COUNTER) for domain in limits_uj}
        cpus = self._cpus()
        over_s = (now_us - self._last_us) / 1e6
        used_uj = [(counters[domain] - self._last.get(domain, 0)) % (limit + 1) for domain, limit in limits_uj.items()]
        wraps_once = all(over_s < longest_s(limit) for limit in limits_uj.values())
        possible = all(used <= over_s * _MAX_W * _UJ for used in used_uj)
        still = [domain for domain, uj in counters.items() if over_s >= _MOVES_S and self._last.get(domain) == uj]
        if self._last.keys() == counters.keys() and wraps_once and possible and not still:
            self._total_uj += sum(used_uj)
        else:
            self._generation, self._total_uj = self._generation + 1, 0
        self._last, self._last_us = counters, now_us
        if still:
            path = self._root / still[0] / COUNTER
            raise CollectorError(f"RAPL: {path}: does not count: remove rapl from [agent] collectors")
        return PackageReading(self._total_uj / _UJ, self._generation, cpus)

    def close(self) -> None:
        """Forget the last reading."""
        self._last = {}

    def _cpus(self) -> int:
        """Count the CPUs that are online, as 0-127 or 0,2-63."""
        text, found = _text(self._online, _MAX_CPUS_B), 0
        for part in text.split(","):
            match = _CPUS.fullmatch(part)
            if match is None:
                raise CollectorError(f"RAPL: {self._online}: {text[:20]!r} is not a list of CPUs")
            found += int(match[2] or match[1]) - int(match[1]) + 1
        if not 0 < found <= _MAX_CPUS:
            raise CollectorError(f"RAPL: {self._online}: {text[:20]!r} is not a list of CPUs")
        return found


def packages(root: Path) -> dict[str, str]:
    """Return the name of each CPU package by its folder in the powercap tree. Raises CollectorError where none is."""
    try:
        with os.scandir(root) as entries:
            folders = sorted(entry.name for entry in islice(entries, _MAX_ENTRIES) if _DOMAIN.fullmatch(entry.name))
    except OSError as error:
        raise CollectorError(f"RAPL: {root}: {error.strerror}: has this kernel intel_rapl?") from error
    names = {folder: _text(root / folder / "name", _MAX_B) for folder in folders[:_MAX_DOMAINS]}
    found = {folder: name for folder, name in names.items() if _PACKAGE.fullmatch(name)}
    if not found:
        raise CollectorError(f"RAPL: {root}: no CPU package: remove rapl from [agent] collectors")
    return found


def range_uj(folder: Path) -> int:
    """Return the value after which a package's counter wraps to 0. Raises CollectorError."""
    return _count(folder / "max_energy_range_uj")


def longest_s(limit_uj: int) -> float:
    """Return the time between two readings in which a counter of this range cannot wrap twice."""
    return limit_uj / _UJ / _MAX_W


def _count(path: Path) -> int:
    text = _text(path, _MAX_B)
    if not _NUMBER.fullmatch(text):
        raise CollectorError(f"RAPL: {path}: {text[:20]!r} is not a number of microjoules")
    return int(text)


def _text(path: Path, most_b: int) -> str:
    """Return a short file's text. Raises CollectorError; never blocks, whatever the path is."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(fd, most_b).decode("ascii", "replace").strip()
        finally:
            os.close(fd)
    except PermissionError as error:
        raise CollectorError(f"RAPL: {path}: {error.strerror}: {_WHAT_TO_DO}") from error
    except OSError as error:
        raise CollectorError(f"RAPL: {path}: {error.strerror}") from error

"""Outlet: where the hub sends events, as declared in a file of [hub] outlets_dir: kinds, beginning, transport.

Each file in outlets/ is one transport: it has SETTINGS, the type of its table, and `make(settings, where)`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from gpuwaste.act.events import outlets
from gpuwaste.act.events.transport_files import Transport, load_files, read_way
from gpuwaste.core.errors import ConfigError, GpuwasteError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.typed_toml import key, read_table
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.kind_catalogue import kinds_of

BEGINNINGS: Final = ("now", "oldest")
WAYS: Final[ModuleRegistry[Any]] = ModuleRegistry(outlets, "SETTINGS", "make")
"""The transports, by the names of their tables."""


class OutletDownError(GpuwasteError):
    """Not all events could be delivered now; the same events are sent again later."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Events that the receiver will never accept, each with its reason; all the others were delivered."""

    dead: Sequence[tuple[StoredEvent, str]] = ()


class Outlet(Protocol):
    """Delivers events in their order. Call it from one thread."""

    def deliver(self, events: Sequence[StoredEvent], cluster: str) -> DeliveryResult:
        """Return once the receiver has acknowledged all events that it accepts. Raises OutletDownError."""

    def close(self) -> None:
        """Close connections."""


@dataclass(frozen=True, slots=True)
class OutletTable:
    """Table [outlet]."""

    events: tuple[str, ...] = key((), "Kinds of events: job.started, job.*; empty: all.")
    begin: str = key("now", "Where a new outlet begins: now, or oldest, the first event that the hub has.")


@dataclass(frozen=True, slots=True)
class OutletFile(Transport[Outlet]):
    """One outlet from its file."""

    kinds: frozenset[str]
    begin: str


def load_outlets(directory: Path, site: Collection[str] = ()) -> tuple[list[OutletFile], list[ConfigError]]:
    """Return the outlets of a directory and the errors of the others; `site` are the kinds that inlets declare."""
    return load_files(directory, "outlets", partial(load_outlet, site=site))


def load_outlet(path: Path, site: Collection[str] = ()) -> OutletFile:
    """Return the outlet of a file. Raises ConfigError."""
    file = read_way(path, "an outlet", WAYS, ("outlet",))
    table: OutletTable = read_table(OutletTable, file.tables.get("outlet", {}), f"{file.where}: [outlet]")
    check_beginning(table.begin, f"{file.where}: [outlet]")
    kinds = kinds_of(table.events, f"{file.where}: [outlet] events", site)
    return OutletFile(file.name, file.way, file.make, kinds, table.begin)


def check_beginning(begin: str, where: str) -> None:
    """Raise ConfigError unless it is one of BEGINNINGS."""
    if begin not in BEGINNINGS:
        raise ConfigError(f"{where} begin {begin!r:.40}: expected {' or '.join(BEGINNINGS)}")

"""Inlet: where the hub gets events of other systems, as declared in a file of [hub] inlets_dir: kinds and rates.

Each file in inlets/ is one transport: events are sent to the hub (SentInlet), or the hub fetches them (FetchedInlet).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from gpuwaste.act.events import inlets as ways_in
from gpuwaste.act.events.inlet_store import LogPlaces, SentRequest
from gpuwaste.act.events.transport_files import MAX_FILE_B, Transport, load_files, read_way
from gpuwaste.core.errors import ConfigError, GpuwasteError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.typed_toml import key, nearest, parse_toml, read_data, read_table
from gpuwaste.jobs.events.event_kind import EventKind
from gpuwaste.jobs.events.kind_catalogue import FAMILY, catalogue, read_kinds

WAYS: Final[ModuleRegistry[Any]] = ModuleRegistry(ways_in, "SETTINGS", "make")
"""The transports, by the names of their tables."""
_MOST_PER_MINUTE: Final = 60_000
_MOST_PER_DAY: Final = 1_000_000


class InletDownError(GpuwasteError):
    """Nothing could be fetched now; the events remain in the log."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Events as they were sent, the positions after them, and notes for the hub's log."""

    texts: Sequence[bytes]
    places: LogPlaces
    notes: Sequence[str] = ()


@runtime_checkable
class SentInlet(Protocol):
    """An inlet that receives requests."""

    def check(self, headers: Mapping[str, str], body: bytes, now_utc: int) -> SentRequest:
        """Return the request; `headers` have lower-case names. Raises UnsignedError if it is from somebody else."""


@runtime_checkable
class FetchedInlet(Protocol):
    """Fetches events from a log. Call it from one thread."""

    def fetch(self, known: LogPlaces | None) -> Fetched:
        """Return events after the positions `known`, None for a new inlet; wait briefly for the first one.

        Raises InletDownError.
        """

    def close(self) -> None:
        """Close connections; the next fetch starts at the positions that it is given."""


@dataclass(frozen=True, slots=True)
class InletTable:
    """Table [inlet]."""

    kinds: tuple[str, ...] = key((), "Kinds that it accepts, site.NAME; empty: those that the file declares, else all.")
    per_minute: int = key(60, "Largest number of events a minute; what is more waits at the sender or the broker.")
    per_day: int = key(10_000, "Largest number of events in 24 hours, on average.")


@dataclass(frozen=True, slots=True)
class InletFile(Transport[SentInlet | FetchedInlet]):
    """One inlet from its file; `own` are the kinds that it declares itself."""

    kinds: Mapping[str, EventKind]
    own: Mapping[str, EventKind]
    per_minute: int
    per_day: int


def load_inlets(directory: Path) -> tuple[list[InletFile], list[ConfigError]]:
    """Return the inlets of a directory, and the errors of the others: only one file may declare a kind."""
    found, errors = load_files(directory, "inlets", load_inlet)
    inlets: list[InletFile] = []
    declared: dict[str, str] = {}
    for inlet in found:
        twice = next((name for name in inlet.own if name in declared), None)
        if twice is not None:
            path = directory / f"{inlet.name}.toml"
            errors.append(ConfigError(f"{path}: {twice} is declared by {declared[twice]}.toml too: use another name"))
            continue
        declared |= dict.fromkeys(inlet.own, inlet.name)
        inlets.append(inlet)
    return inlets, errors


def load_inlet(path: Path) -> InletFile:
    """Return the inlet of a file. Raises ConfigError."""
    file = read_way(path, "an inlet", WAYS, ("inlet", "kind"))
    if "inlet" not in file.tables:
        raise ConfigError(f"{file.where}: expected a table [inlet]; it may be empty")
    where = f"{file.where}: [inlet]"
    table: InletTable = read_table(InletTable, file.tables["inlet"], where)
    for name, value, most in (
        ("per_minute", table.per_minute, _MOST_PER_MINUTE),
        ("per_day", table.per_day, _MOST_PER_DAY),
    ):
        if not 1 <= value <= most:
            raise ConfigError(f"{where} {name} {value}: expected 1 to {most}")
    own = read_kinds(file.tables.get("kind", {}), file.where)
    known = {name: kind for name, kind in catalogue().items() if name.startswith(FAMILY)} | own
    for name in table.kinds:
        if name not in known:
            raise ConfigError(f"{where} kinds: no kind of the site is called {name!r:.60}{nearest(name, set(known))}")
    taken = {name: known[name] for name in table.kinds or own or known}
    return InletFile(file.name, file.way, file.make, taken, own, table.per_minute, table.per_day)


def is_inlet(path: Path) -> bool:
    """Return whether a file is an inlet: it has the table [inlet]. A file that cannot be read is none."""
    try:
        return "inlet" in parse_toml(read_data(path, MAX_FILE_B, "an inlet"), str(path))
    except ConfigError:
        return False

"""Values of the machine's TOML that TOML has no type for, each with its reader: (value, where) -> the model's value."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NewType, cast, get_args

from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.core.text import words_of
from gpuwaste.sim.cluster import PreemptMode
from gpuwaste.sim.clusters import values
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.site.tres_weights import parse_weights

Bytes = NewType("Bytes", int)
Count = NewType("Count", int)
Duration = NewType("Duration", int)
Gpus = NewType("Gpus", dict[str, int])
Hosts = NewType("Hosts", tuple[str, ...])
Instant = NewType("Instant", int)
Mode = NewType("Mode", str)
Name = NewType("Name", str)
Shares = NewType("Shares", int)
Tres = NewType("Tres", dict[str, int])
Weights = NewType("Weights", dict[str, float])

_PARENT: Final = "parent"
_GPU: Final = "gpu:"


def _text_of(expected: str, read: Callable[[str], Any]) -> Callable[[Any, str], Any]:
    """Return a reader of a text; a number is taken as it is written, as Slurm's own files have no quotes."""

    def reader(value: Any, where: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ConfigError(f"{where}: expected {expected}, found {words_of(value, 40)}")
        try:
            return read(str(value))
        except ParseError as error:
            raise ConfigError(f"{where}: {error}") from error

    return reader


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= values.MOST:
        raise ConfigError(f"{where}: expected a whole number of 0 or more, found {words_of(value, 40)}")
    return value


def _shares(value: Any, where: str) -> int | None:
    return None if value == _PARENT else _count(value, where)


def _instant(value: Any, where: str) -> int:
    if isinstance(value, datetime):
        return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > values.MOST:
        raise ConfigError(f"{where}: expected 2027-01-31T12:00:00Z or UTC seconds, found {words_of(value, 40)}")
    return value


def _mode(value: Any, where: str) -> PreemptMode:
    if value not in get_args(PreemptMode):
        raise ConfigError(f"{where}: expected {', '.join(get_args(PreemptMode))}, found {words_of(value, 40)}")
    return cast("PreemptMode", value)


def _gpus(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        kind, _, count = part.strip().removeprefix(_GPU).rpartition(":")
        found[kind] = found.get(kind, 0) + values.whole(count, "gpus")
    return found


def gpus_text(gpus: Mapping[str, int]) -> str:
    """Return GPUs by type as `Gpus` is read."""
    plain = not any(kind == "gpu" or kind.startswith(_GPU) for kind in gpus)
    prefix = "" if plain else _GPU
    return ",".join(f"{prefix}{kind}:{count}" if kind else f"{prefix}{count}" for kind, count in gpus.items())


def _hosts(value: Any, where: str) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise ConfigError(f"{where}: expected a hostlist as gpu[01-16], found {words_of(value, 40)}")
    try:
        return tuple(name for part in parts for name in expand(part))
    except ParseError as error:
        raise ConfigError(f"{where}: {error}") from error


READERS: Final[Mapping[Any, Callable[[Any, str], Any]]] = {
    Bytes: _text_of("an amount as 512G", values.size),
    Count | None: _count,
    Duration | None: _text_of("a duration as 1-00:00:00", values.seconds),
    Gpus: _text_of("GPUs as a100:4", _gpus),
    Hosts: _hosts,
    Instant: _instant,
    Mode | None: _mode,
    Name | None: _text_of("a name", str),
    Shares | None: _shares,
    Tres: _text_of("TRES as cpu=64,gres/gpu=8", values.tres),
    Weights: _text_of("weights as cpu=1.0,mem=0.25G", parse_weights),
}

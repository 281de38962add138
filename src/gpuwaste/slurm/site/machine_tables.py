"""The tables of the machine's TOML: each key is declared once with its field of the model, for reading and writing.

A key is left out of a written file where its field has the default of the model's type (cluster_model.py).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, cast, get_args

from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.core.text import words_of
from gpuwaste.core.typed_toml import Reader, nearest, plain_value, toml_value
from gpuwaste.core.units import format_duration
from gpuwaste.slurm.accounting.tres_amounts import amounts_text, parse_weights, tres_amounts, weights_text
from gpuwaste.slurm.formats.hostlist import MAX_NAMES, compressed, expand
from gpuwaste.slurm.site import slurm_values as values
from gpuwaste.slurm.site.cluster_model import (
    DOWN,
    UP,
    Association,
    Failures,
    LimitSet,
    Node,
    Outage,
    Partition,
    PreemptMode,
    Qos,
    Reservation,
)

ALL: Final = ("ALL",)
"""The hostlist that means all nodes."""
_ROOT: Final = "root"
_PARENT: Final = "parent"
_GPU: Final = "gpu:"
_LAST_DATE: Final = 253_402_300_800  # the year 10000


class TomlKind(NamedTuple):
    """How a value is read, (value, where) -> the field's, and written; `absent`: the value without a default."""

    read: Reader
    write: Callable[[Any], str]
    absent: Any = None


class TomlKey(NamedTuple):
    """One key: the field of the model's type, or of its limits; `always`: it is written even with its default."""

    field: str
    kind: TomlKind
    default: Any
    always: bool
    of_limits: bool = False


class TomlTable(NamedTuple):
    """The keys of one table, by name in the order in which they are written."""

    make: Callable[..., Any]
    keys: Mapping[str, TomlKey]

    def read(self, data: Any, where: str) -> Any:
        """Return this part of the model. Raises ConfigError for the first key that is unknown or cannot be read."""
        found = self.values(data, where)
        limits = {key.field: found.pop(key.field) for key in self.keys.values() if key.of_limits}
        return self.make(**found, **({"limits": LimitSet(**limits)} if limits else {}))

    def values(self, data: Any, where: str) -> dict[str, Any]:
        """Return the values by field, with the defaults of missing keys. Raises ConfigError."""
        if not isinstance(data, dict):
            raise ConfigError(f"{where} is not a table")
        for name in data:
            if name not in self.keys:
                raise ConfigError(f"{where} unknown key {name!r}{nearest(name, set(self.keys))}")
        found = {key.field: key.default for key in self.keys.values()}
        for name, value in data.items():
            found[self.keys[name].field] = self.keys[name].kind.read(value, f"{where} {name}")
        return found

    def written(self, part: Any, texts: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
        """Yield the keys of a part with their values as TOML; `texts` gives the values of some keys, None: left out."""
        for name, key in self.keys.items():
            if name in texts:
                text = texts[name]
            else:
                value = getattr(part.limits if key.of_limits else part, key.field)
                text = key.kind.write(value) if key.always or value != key.default else None
            if text is not None:
                yield name, text


def hosts_text(names: Iterable[str]) -> str:
    """Return names as a hostlist, as TOML: a list of several where one would be too long."""
    found = list(names)
    parts = [compressed(found[first : first + MAX_NAMES]) for first in range(0, len(found), MAX_NAMES)]
    return toml_value(parts[0] if len(parts) == 1 else parts)


def parent_of(account: Any, user: Any) -> str:
    """Return the parent where a table names none: a user's is the account, an account's is root."""
    return account if user else ("" if account == _ROOT else _ROOT)


def _plain(kind: Any, write: Callable[[Any], str], absent: Any = None) -> TomlKind:
    return TomlKind(lambda value, where: plain_value(kind, value, where), write, absent)


def _text(expected: str, read: Callable[[str], Any], write: Callable[[Any], str]) -> TomlKind:
    """Return the kind of a text; a number is taken as written, as Slurm's own files have no quotes."""

    def reader(value: Any, where: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ConfigError(f"{where}: expected {expected}, found {words_of(value, 40)}")
        try:
            return read(str(value))
        except ParseError as error:
            raise ConfigError(f"{where}: {error}") from error

    return TomlKind(reader, lambda value: toml_value(write(value)))


def _state(of_true: str, of_false: str) -> TomlKind:
    """Return the kind of a flag that means a state."""
    return TomlKind(
        lambda value, where: of_true if plain_value(bool, value, where) else of_false,
        lambda state: toml_value(state == of_true),
    )


def _names(value: Any, where: str) -> frozenset[str]:
    return frozenset(plain_value(tuple[str, ...], value, where))


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


def _instant_text(seconds: int) -> str:
    if not 0 <= seconds < _LAST_DATE:
        return str(seconds)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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


def _gpus_text(gpus: Mapping[str, int]) -> str:
    plain = not any(kind == "gpu" or kind.startswith(_GPU) for kind in gpus)
    prefix = "" if plain else _GPU
    return ",".join(f"{prefix}{kind}:{count}" if kind else f"{prefix}{count}" for kind, count in gpus.items())


def _hosts(value: Any, where: str) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise ConfigError(f"{where}: expected a hostlist such as gpu[01-16], found {words_of(value, 40)}")
    try:
        return tuple(name for part in parts for name in expand(part))
    except ParseError as error:
        raise ConfigError(f"{where}: {error}") from error


_FLAG: Final = _plain(bool, toml_value)
_WHOLE: Final = _plain(int, repr)
_REAL: Final = _plain(float, repr, 0.0)
_TEXT: Final = _plain(str, toml_value, "")
_SET: Final = TomlKind(_names, lambda names: toml_value(sorted(names)))
_COUNT: Final = TomlKind(_count, repr)
_INSTANT: Final = TomlKind(_instant, _instant_text, 0)
_HOSTS: Final = TomlKind(_hosts, hosts_text, ())
_MODE: Final = TomlKind(_mode, toml_value)
_SHARES: Final = TomlKind(_shares, lambda shares: toml_value(_PARENT) if shares is None else repr(shares))
_NAME: Final = _text("a name", str, str)
_SIZE: Final = _text("an amount such as 512G", values.size, values.size_text)
_DURATION: Final = _text("a duration such as 1-00:00:00", values.seconds, format_duration)
_GPUS: Final = _text("GPUs such as a100:4", _gpus, _gpus_text)
_TRES: Final = _text("TRES such as cpu=64,gres/gpu=8", tres_amounts, amounts_text)
_WEIGHTS: Final = _text("weights such as cpu=1.0,mem=0.25G", parse_weights, weights_text)


def _default(field: Field[Any], kind: TomlKind) -> Any:
    if field.default is not MISSING:
        return field.default
    return kind.absent if field.default_factory is MISSING else field.default_factory()


def _keys(
    of: Any, always: Collection[str] = (), *, of_limits: bool = False, **kinds: TomlKind | tuple[str, TomlKind]
) -> dict[str, TomlKey]:
    """Declare the keys of a type of the model: KEY=KIND where the field has the key's name, else KEY=(FIELD, KIND)."""
    known = {field.name: field for field in fields(of)}
    found = {}
    for name, given in kinds.items():
        field, kind = (name, given) if isinstance(given, TomlKind) else given
        needed = known[field].default is MISSING and known[field].default_factory is MISSING
        found[name] = TomlKey(field, kind, _default(known[field], kind), needed or name in always, of_limits)
    return found


_LIMITS: Final = _keys(
    LimitSet, of_limits=True,
    grp_tres=_TRES, max_tres_per_job=_TRES, max_tres_per_node=_TRES, max_tres_per_user=_TRES,
    grp_jobs=_COUNT, grp_submit_jobs=_COUNT, max_jobs_per_user=_COUNT, max_submit_per_user=_COUNT,
    grp_wall=("grp_wall_s", _DURATION), max_wall=("max_wall_s", _DURATION),
)  # fmt: skip
NODES: Final = TomlTable(Node, _keys(
    Node, ("cpus", "memory"),
    names=("name", _HOSTS), cpus=_WHOLE, memory=("memory_b", _SIZE), gpus=_GPUS, features=_SET, weight=_WHOLE,
    down=("state", _state(DOWN, "")),
))  # fmt: skip
PARTITIONS: Final = TomlTable(Partition, _keys(
    Partition,
    name=_TEXT, nodes=_HOSTS, default=_FLAG, up=("state", _state(UP, DOWN)), max_time=("max_time_s", _DURATION),
    default_time=("default_time_s", _DURATION), min_nodes=_WHOLE, max_nodes=_COUNT, priority_tier=_WHOLE,
    priority_job_factor=_WHOLE, whole_nodes=_FLAG, preempt_mode=_MODE, qos=_TEXT, allow_accounts=_SET,
    deny_accounts=_SET, allow_qos=_SET, deny_qos=_SET, billing_weights=_WEIGHTS,
))  # fmt: skip
QOS: Final = TomlTable(Qos, {
    **_keys(Qos, name=_TEXT, priority=_WHOLE), **_LIMITS,
    **_keys(Qos, preempts=_SET, preempt_mode=_MODE, usage_factor=_REAL, flags=_SET),
})  # fmt: skip
ASSOCIATIONS: Final = TomlTable(Association, {
    **_keys(Association, account=_TEXT, user=_TEXT, parent=_NAME, partition=_TEXT, shares=_SHARES), **_LIMITS,
    **_keys(Association, default_qos=_TEXT, qos=_SET, priority=_WHOLE, usage=_REAL),
})  # fmt: skip
RESERVATIONS: Final = TomlTable(
    Reservation, _keys(Reservation, name=_TEXT, nodes=_HOSTS, start=_INSTANT, end=_INSTANT, users=_SET, accounts=_SET)
)
OUTAGES: Final = TomlTable(Outage, _keys(Outage, node=_TEXT, start=_INSTANT, end=_INSTANT))
FAILURES: Final = TomlTable(Failures, _keys(Failures, ("repair_h",), mtbf_h=_REAL, repair_h=_REAL))
TABLES: Final = (NODES, PARTITIONS, QOS, ASSOCIATIONS, RESERVATIONS, OUTAGES, FAILURES)

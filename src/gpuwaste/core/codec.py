"""Records are declared once: their JSON, their validation and their reference pages are derived from that.

A record is a dataclass whose fields are annotated with msgspec.Meta (bounds and meaning); a field that is sent under
other names or in another unit also has a `Wire`. Unknown fields are ignored, so that a newer program is understood.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Annotated, Any, Final, Generic, TypeVar, cast, get_args, get_type_hints

import msgspec
from msgspec import Meta

from gpuwaste.core import typed
from gpuwaste.core.errors import ParseError

MAX_I64: Final = 2**63 - 1
Int64 = Annotated[int, Meta(ge=-MAX_I64, le=MAX_I64)]
Whole = Annotated[int, Meta(ge=0, le=MAX_I64)]
Number = Annotated[float, Meta(ge=-(2.0**63), le=2.0**63)]  # bounds refuse NaN as well
OPTIONAL: Final = "a field that a sender may leave out"  # as may each field that can be null
SPARSE: Final = "a field that is not written while it is empty: readers that do not know it get the row as it was"
_PLACE: Final = re.compile(r"(.{1,400}?)(?: - at (`key` in )?`\$\.?(.{0,100})`)?", re.DOTALL)
_ODD: Final = re.compile(r"[^ -~]")  # a peer's special characters stay off terminals and logs
_MAX_TEXT: Final = 200
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Wire:
    """How a field is sent: the type of each part by name, and the functions from and to the parts."""

    parts: Mapping[str, Any]
    read: Callable[..., Any]
    write: Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """The store's column of a map's keys; the values are in the column named as the field."""

    name: str


@dataclass(frozen=True, slots=True)
class PartColumn:
    """The store's column of a part of a compound value, where its name is not the part's."""

    name: str


def convert(data: object, kind: type[_T], what: str) -> _T:
    """Return parsed JSON as a value of the type. Raises ParseError: one line that names `what` and the field."""
    return _checked(lambda: typed.convert(data, kind, str_keys=True), what)


def problem(error: Exception) -> str:
    """Return what is wrong with a value, on one line, its place first."""
    found = _PLACE.fullmatch(str(error)[:500])
    text, key, place = found.groups() if found else (str(error), None, None)
    where = f"{place}: " if place else ""
    words = f"{where}{'a key: ' if key else ''}{text[:1].lower()}{text[1:]}"
    return _ODD.sub(lambda odd: odd[0].encode("unicode_escape").decode(), words)[:_MAX_TEXT]


def annotated(record: type[Any]) -> Iterator[tuple[Field[Any], Any, tuple[Any, ...]]]:
    """Yield each field of a record with its type and its annotations other than msgspec.Meta."""
    hints = get_type_hints(record, include_extras=True)
    for field in fields(record):
        kind = hints[field.name]
        yield field, kind, tuple(mark for mark in getattr(kind, "__metadata__", ()) if not isinstance(mark, Meta))


def nullable(kind: Any) -> Any:
    """Return a type that also takes null, with the same meaning."""
    marks = getattr(kind, "__metadata__", ())
    about = next((mark.description for mark in marks if isinstance(mark, Meta) and mark.description), None)
    return Annotated[kind | None, Meta(description=about)]


class Codec(Generic[_R]):
    """Writes and reads one type of record as a JSON object; `what` names it in errors.

    With a `schema` the first field is that number; the next number is accepted too, later ones are rejected.
    """

    def __init__(self, record: type[_R], what: str, schema: int | None = None) -> None:
        self._record, self._what, self._schema = record, what, schema
        names: list[tuple[Any, ...]] = []
        if schema is not None:
            about = f"{schema}; the next one is read too, what it adds is ignored"
            names.append(("schema", Annotated[int, Meta(ge=1, le=1_000_000, description=about)]))
        self._names: list[str] = [name for name, *_ in names]
        self._fields: list[tuple[str, int, Wire | None]] = []  # the field, its number of parts
        self._sparse: list[str] = []
        for field, kind, marks in annotated(cast("type[Any]", record)):
            wire = next((mark for mark in marks if isinstance(mark, Wire)), None)
            parts = {field.name: kind} if wire is None else wire.parts
            absent = _absent(field, *parts.values()) if len(parts) == 1 else ()
            names += [(name, part, *absent) for name, part in parts.items()]
            self._names += parts
            self._fields.append((field.name, len(parts), wire))
            self._sparse += parts if SPARSE in marks else []
        self.struct: type[msgspec.Struct] = msgspec.defstruct(cast("type[Any]", record).__name__, names)
        self.struct.__doc__ = cast("type[Any]", record).__doc__
        self._decoder = typed.decoder(self.struct)

    def decode(self, line: bytes) -> _R:
        """Return the record of a line of JSON. Raises ParseError."""
        return self._read(_checked(lambda: self._decoder.decode(line), self._what))

    def convert(self, data: object) -> _R:
        """Return the record of parsed JSON. Raises ParseError."""
        return self._read(convert(data, self.struct, self._what))

    def to_json(self, record: _R) -> dict[str, Any]:
        """Return the record as JSON data."""
        values: list[Any] = [] if self._schema is None else [self._schema]
        for name, _, wire in self._fields:
            value = getattr(record, name)
            values.extend((value,) if wire is None else wire.write(value))
        found = dict(zip(self._names, values, strict=True))
        for name in self._sparse:
            if found[name] is None or found[name] == {}:
                del found[name]
        return found

    def _read(self, found: msgspec.Struct) -> _R:
        values = iter(msgspec.structs.astuple(found))
        if self._schema is not None and (sent := next(values)) > self._schema + 1:
            raise ParseError(f"{self._what}: schema {sent} is newer than this hub's ({self._schema}): update the hub")
        return self._record(
            *(
                next(values) if wire is None else wire.read(*(next(values) for _ in range(count)))
                for _, count, wire in self._fields
            )
        )


def in_seconds(name: str, high: float, about: str, *, optional: bool = False) -> Wire:
    """Return the `Wire` of whole milliseconds: sent as seconds with three decimals, from 0 to `high`."""
    kind: Any = Annotated[float, Meta(ge=0, le=high)]
    if optional:
        return Wire({name: Annotated[kind | None, Meta(description=about)]}, _some(to_ms), lambda ms: (_seconds(ms),))
    return Wire({name: Annotated[kind, Meta(description=about)]}, to_ms, lambda ms: (ms / 1000,))


def map_in_seconds(name: str, key: Any, high: float, about: str) -> Wire:
    """Return the `Wire` of milliseconds by `key`: sent as seconds, at most 128 of them."""
    kind: Any = dict[key, Annotated[float, Meta(ge=0, le=high)]]
    return Wire(
        {name: Annotated[kind, Meta(max_length=128, description=about)]},
        lambda found: {at: to_ms(seconds) for at, seconds in found.items()},
        lambda found: ({str(at): ms / 1000 for at, ms in sorted(found.items())},),
    )


def to_ms(seconds: float) -> int:
    """Return seconds as whole milliseconds."""
    return round(seconds * 1000)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _some(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _absent(field: Field[Any], kind: Any) -> tuple[Any, ...]:
    """Return the default of a field that was left out, () where it is required."""
    marks = getattr(kind, "__metadata__", ())
    if OPTIONAL in marks:
        made: Any = field.default_factory
        return (field.default if field.default is not MISSING else msgspec.field(default_factory=made),)
    inner = get_args(kind)[0] if marks else kind
    return (None,) if type(None) in get_args(inner) else ()


def _checked(read: Callable[[], _T], what: str) -> _T:
    try:
        return read()
    except msgspec.ValidationError as error:
        raise ParseError(f"{what}: {problem(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ParseError(f"{what}: invalid JSON") from error

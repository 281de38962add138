"""msgspec's readers, for programs with several threads.

msgspec analyses a type when it first reads a value of it; another thread that sees the unfinished analysis crashes the
process or rejects valid data (seen with 0.22, Python 3.11 and 3.13). Here one thread at a time analyses a type.
"""

import threading
from typing import Any, Final, TypeVar, overload

import msgspec

_T = TypeVar("_T")
_lock: Final = threading.Lock()
_studied: Final[set[object]] = set()


def convert(data: object, kind: type[_T], *, from_attributes: bool = False, str_keys: bool = False) -> _T:
    """Return plain data as a value of the type. Raises msgspec.ValidationError."""
    _study(kind)
    return msgspec.convert(data, kind, from_attributes=from_attributes, str_keys=str_keys)  # noqa: TID251 studied


@overload
def decode(body: bytes | str) -> Any: ...


@overload
def decode(body: bytes | str, kind: type[_T]) -> _T: ...


def decode(body: bytes | str, kind: Any = Any) -> Any:
    """Return JSON as a value of the type, plain data without a type. Raises msgspec.DecodeError, ValidationError."""
    _study(kind)
    return msgspec.json.decode(body, type=kind)  # noqa: TID251 studied


def decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]:  # noqa: TID251 the type's name
    """Return a JSON decoder, for a type that is read often."""
    with _lock:
        return msgspec.json.Decoder(kind)  # noqa: TID251 within the lock


def _study(kind: object) -> None:
    if kind in _studied:
        return
    with _lock:
        msgspec.json.Decoder(kind)  # noqa: TID251 this analyses the type
        _studied.add(kind)

"""A request as JSON, on the wire of POST /v1/predict and on standard input: the fields of JobRequest by their names."""

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from gpuwaste.core.errors import UsageError
from gpuwaste.core.request import JobRequest

_TEXTS: Final = ("user", "account", "partition", "qos", "name", "gpu_type", "comment")
_FLAGS: Final = ("is_array", "interactive")
_AMOUNTS: Final = ("time_limit_s", "nodes", "cpus", "mem_b")
_KNOWN: Final = tuple(field.name for field in fields(JobRequest))
_MAX_TEXT: Final = 4096
_MAX_SCRIPT: Final = 4 * 1024**2
_LONE: Final = re.compile("[\ud800-\udfff]")  # half a character: JSON can write it, UTF-8 cannot
_MAX_AMOUNT: Final = 1 << 62
MAX_REQUESTS: Final = 1000


def request_to_json(request: JobRequest) -> dict[str, Any]:
    """Return the request as JSON takes it."""
    return asdict(request)


def requests_from_json(data: object, *, user: str = "", submit: int = 0) -> list[JobRequest]:
    """Read one request, a list of them, or {"requests": [...]}; `user` and `submit` stand in where they are left out.

    Raises UsageError naming the request and the field.
    """
    found = data["requests"] if isinstance(data, Mapping) and set(data) == {"requests"} else data
    items = found if isinstance(found, list) else [found]
    if not items or len(items) > MAX_REQUESTS:
        raise UsageError(f"requests: {len(items)} of them: expected 1 to {MAX_REQUESTS}")
    return [_request(item, f"request {place}", user, submit) for place, item in enumerate(items, 1)]


def _request(item: object, where: str, user: str, submit: int) -> JobRequest:
    if not isinstance(item, Mapping):
        raise UsageError(f"{where}: expected an object with the fields {', '.join(_KNOWN)}")
    for name in item:
        if name not in _KNOWN:
            raise UsageError(f"{where}: unknown field {str(name)[:40]!r}: the fields are {', '.join(_KNOWN)}")
    values = {name: value for name, value in item.items() if value is not None}
    read: dict[str, Any] = {name: _text(values, name, where, _MAX_TEXT) for name in _TEXTS}
    read |= {name: _flag(values, name, where) for name in _FLAGS}
    read |= {name: _amount(values, name, where) for name in _AMOUNTS}
    return JobRequest(
        **{
            **read,
            "user": read["user"] or user,
            "submit": _amount(values, "submit", where) or submit,
            "gpus": _amount(values, "gpus", where) or 0,
            "script": _text(values, "script", where, _MAX_SCRIPT) if "script" in values else None,
            "whole_node": _flag(values, "whole_node", where) if "whole_node" in values else None,
        }
    )


def _text(values: Mapping[str, Any], name: str, where: str, longest: int) -> str:
    value = values.get(name, "")
    if not isinstance(value, str) or len(value) > longest or _LONE.search(value):
        raise UsageError(f"{where}: {name}: expected a text of at most {longest} characters, in UTF-8")
    return value


def _flag(values: Mapping[str, Any], name: str, where: str) -> bool:
    value = values.get(name, False)
    if not isinstance(value, bool):
        raise UsageError(f"{where}: {name}: expected true or false")
    return value


def _amount(values: Mapping[str, Any], name: str, where: str) -> int | None:
    value = values.get(name)
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= _MAX_AMOUNT or value != int(value):
        raise UsageError(f"{where}: {name}: expected a whole number from 0 on")
    return int(value)

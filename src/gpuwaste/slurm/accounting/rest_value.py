"""Values of slurmrestd's JSON, of every version: numbers, times, texts, exit codes, states and TRES lists.

Up to v0.0.39 a number is plain, and null, NO_VAL or INFINITE mean "no number"; from v0.0.40 on many are objects
{"set": true, "infinite": false, "number": 5}. States are one word, later a list of a state and its flags.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gpuwaste.core.errors import ParseError, SlurmError
from gpuwaste.core.job_states import STATES
from gpuwaste.core.text import storable
from gpuwaste.slurm.accounting.requested import NO_NUMBERS

Json = Mapping[str, Any]

_NO_WORDS: Final = frozenset({"", "UNLIMITED", "INFINITE", "NONE", "PARTITION_LIMIT", "N/A"})
_MAX: Final = 1 << 63
_STATE_FLAGS: Final = ("REQUEUED", "RESIZING")  # accounting keeps a separate row for these
_MEBIBYTES: Final = frozenset({"mem", "bb"})  # TRES that Slurm counts in MiB and prints with M
_NOTHING_FOUND: Final = frozenset({9003, 9004})  # ESLURM_REST_EMPTY_RESULT and its like: no jobs, no error
_SHOWN: Final = 80


def load(data: bytes) -> Json:
    """Return the object of an answer. Raises ParseError naming what arrived instead: nothing, HTML, half of it."""
    if not data.strip():
        raise ParseError("expected JSON with jobs, found nothing")
    text = data.decode("utf-8", "surrogateescape")  # a backslash in place of a byte would be invalid JSON
    try:
        found = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("<"):
            raise ParseError(f"expected JSON, found HTML: {_shown(text)}: is this slurmrestd?") from error
        half = isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip()) - 1
        what = "the JSON is cut off" if half else f"invalid JSON ({error})"
        raise ParseError(f"{what}, {len(data)} bytes beginning {_shown(text)}") from error
    if not isinstance(found, dict):
        raise ParseError(f"expected an object with jobs, found {_shown(text)}")
    return found


def jobs(data: bytes) -> list[Any]:
    """Return the items of `jobs`. Raises ParseError, and SlurmError with the text of `errors`."""
    found = load(data)
    message = error_text(found)
    if message:
        raise SlurmError(message)
    items = found.get("jobs")
    if not isinstance(items, list):
        raise ParseError(f"no list of jobs in it; it has {', '.join(map(str, found))[:_SHOWN] or 'nothing'}")
    return items


def error_text(answer: Json) -> str:
    """Return the first real error of an answer as text, "" for none; an empty result is not an error."""
    errors = answer.get("errors")
    for error in errors if isinstance(errors, list) else []:
        if not isinstance(error, dict):
            return storable(str(error))[:200]
        if error.get("error_number") in _NOTHING_FOUND:
            continue
        words = (error.get("error"), error.get("description"), error.get("source"))
        parts = dict.fromkeys(storable(str(word)) for word in words if word)
        return ": ".join(parts)[:300] or "an error without a message"
    return ""


def at(found: Any, *path: str) -> Any:
    """Return the value at a path of keys, None where a key is missing. Raises ParseError for a wrong type."""
    for depth, key in enumerate(path):
        if found is None:
            return None
        if not isinstance(found, dict):
            raise ParseError(f"{'.'.join(path[:depth])}: expected an object, found {_shown(found)}")
        found = found.get(key)
    return found


def number(found: Any, *path: str) -> int | None:
    """Return a number of any shape, None for unset, infinite, negative and NO_VAL. Raises ParseError."""
    value = at(found, *path)
    if isinstance(value, dict):
        if not value.get("set") or value.get("infinite"):
            return None
        value = value.get("number")
    if value is None:
        return None
    if isinstance(value, str):
        if value.strip().upper() in _NO_WORDS:
            return None
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 20 else value  # noqa: PLR2004
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseError(f"{'.'.join(path)}: expected a number, found {_shown(value)}")
    if not math.isfinite(value) or value < 0 or value in NO_NUMBERS:
        return None
    if value >= _MAX:
        raise ParseError(f"{'.'.join(path)}: {value:.3g} is larger than any number of Slurm")
    return int(value)


def newer(found: Any, *path: str) -> bool:
    """Whether a number has the shape of v0.0.40 and later."""
    return isinstance(at(found, *path), dict)


def time_s(found: Any, *path: str) -> int | None:
    """Return UTC seconds; Slurm keeps 0 for "not yet"."""
    return number(found, *path) or None


def text(found: Any, *path: str) -> str:
    """Return a text, "" for null and absent. Raises ParseError."""
    value = at(found, *path)
    if value is None:
        return ""
    if isinstance(value, dict | list | bool):
        raise ParseError(f"{'.'.join(path)}: expected a text, found {_shown(value)}")
    return storable(str(value))


def state(found: Any, *path: str) -> str:
    """Return the state as sacct prints it: of a list, the flag that has a row of its own, else the base state."""
    value = at(found, *path)
    words = [str(word) for word in value] if isinstance(value, list) else text(found, *path).split()
    for word in (*_STATE_FLAGS, *words):
        if word in words and (word in _STATE_FLAGS or word in STATES):
            return word
    return storable(words[0]) if words else ""


def exit_of(found: Any, *path: str) -> tuple[int | None, int | None]:
    """Return exit code and signal.

    Slurm 22.05 (v0.0.38) writes SUCCESS and 0 for every exit code, so its 0 proves nothing: the code is None there,
    and the caller, which knows the state, may infer it. The signal is right in all versions.
    """
    status = at(found, *path, "status")
    plain = not newer(found, *path, "return_code")
    name = "signal_id" if plain else "id"
    signal = number(found, *path, "signal", name)
    code = number(found, *path, "return_code")
    if status is None and code is None:
        return None, None
    if plain and not code and signal is None:
        return None, 0
    return code or 0, signal or 0


def tres_items(found: Any, *path: str) -> Iterator[tuple[str, int]]:
    """Yield type[/name] and count of a TRES list; items without a count are left out. Raises ParseError."""
    value = at(found, *path)
    if value is None:
        return
    if not isinstance(value, list):
        raise ParseError(f"{'.'.join(path)}: expected a list, found {_shown(value)}")
    for item in value:
        kind, name, count = text(item, "type"), text(item, "name"), number(item, "count")
        if kind and count is not None:
            yield (f"{kind}/{name}" if name else kind), count


def tres_text(found: Any, *path: str) -> str:
    """Return a TRES list as sacct --noconvert prints it: `cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=500M`."""
    return tres_print(tres_items(found, *path))


def tres_print(items: Iterable[tuple[str, int]]) -> str:
    """Print TRES as sacct does: sorted by the full text of the item, MiB with M."""
    return ",".join(sorted(f"{name}={count}{_unit(name)}" for name, count in items))


def _unit(name: str) -> str:
    return "M" if name.partition("/")[0] in _MEBIBYTES else ""


def _shown(value: Any) -> str:
    return ascii(value)[:_SHOWN]

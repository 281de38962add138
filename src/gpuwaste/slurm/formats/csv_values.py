"""Values of one row of a CSV file by field: texts, times, amounts, ids.

A value that cannot be read leaves its field unknown; the field and the reason are collected, and reading continues.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Final, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.units import parse_duration_s, parse_size_b
from gpuwaste.slurm.accounting.requested import each_b, is_no_number, total_b
from gpuwaste.slurm.formats.csv_mapping import CsvMapping, TresList, read_tres
from gpuwaste.slurm.formats.slurm_times import parse_time_s

_ABSENT: Final = frozenset(
    {"", "NULL", "None", "null", "NA", "N/A", "nan", "NaN", "-", "-1", "Unknown", "None assigned", "(null)", "\\N"}
)
_MAX: Final = 1e15
_MAX_COUNT: Final = 2**31
_MAX_CODE: Final = 255
_LETTERS: Final = {1024.0: "K", 1024.0**2: "M", 1024.0**3: "G", 1024.0**4: "T"}
_T = TypeVar("_T")


@dataclass(slots=True)
class RowValues:
    """One row by field name, and which of its fields could not be read."""

    row: Mapping[str, str]
    mapped: CsvMapping
    unread: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a text, "" where it is absent."""
        text = self.row.get(name, "")
        return "" if text in _ABSENT else text

    def time(self, name: str) -> int | None:
        """Return UTC seconds."""
        return self._read(name, lambda text: _time(text, self.mapped, name))

    def count(self, name: str) -> int | None:
        """Return an integer below 2^31."""
        return self._read(name, lambda text: _count(text, name))

    def amount(self, name: str) -> float | None:
        """Return seconds or bytes: a number in the field's unit, or a duration or size as Slurm prints it."""
        return self._read(name, lambda text: _amount(text, self.mapped, name))

    def whole(self, name: str) -> int | None:
        """Return an amount without its fraction."""
        value = self.amount(name)
        return None if value is None else int(value)

    def memory(self, name: str, n_nodes: int | None, cpus: int | None) -> int | None:
        """Return total bytes of a request, which may be for each node (64Gn) or processor (4000Mc)."""
        return self._read(name, lambda text: _memory(text, self.mapped.units.get(name), n_nodes, cpus, name))

    def tres(self, name: str) -> TresList:
        """Return a TRES list; an id without a name in [tres] is reported."""
        found = self._read(name, lambda text: read_tres(text, self.mapped.tres)) or TresList()
        if found.unknown:
            self.unread.setdefault(name, f"TRES id {found.unknown[0]!r} has no name in [tres]")
        return found

    def state(self) -> str:
        """Return a state of Slurm's; "" for a number that is not mapped."""
        text = self.row.get("state", "")
        if text in self.mapped.states:
            return self.mapped.states[text]
        if text in _ABSENT:
            return ""
        if text.replace(".", "", 1).isdigit():
            self.unread.setdefault("state", f"the number {text[:20]!r} is not in [states]")
            return ""
        return text.split()[0].upper().rstrip("+")[:40]

    def exit(self) -> tuple[int | None, int | None]:
        """Return exit code and signal: of 1:9, of a code, or of a wait status as slurmdbd keeps it (256 is code 1)."""
        text, waited = self.text("exit_code"), self.mapped.wait_status
        code, colon, signal = text.partition(":")
        pair = self._read("exit_code", lambda _: _exit(code, signal if colon else "", waited=waited)) or (None, None)
        own = self.count("exit_signal")
        return pair[0], pair[1] if own is None else own

    def _read(self, name: str, read: Callable[[str], _T]) -> _T | None:
        text = self.row.get(name, "")
        if text in _ABSENT:
            return None
        try:
            return read(text)
        except GpuwasteError as error:
            self.unread.setdefault(name, str(error).removeprefix(f"{name}: "))
            return None


def drawn_id(text: str) -> int:
    """Return a job id derived from a text, the same each time and above every id that Slurm assigns."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6]) + 2**48


def _number(text: str) -> float | None:
    """Return a number, exact where it is an integer; None for other texts, NaN for a number that means "not set"."""
    try:
        value = int(text) if text.lstrip("-").isdigit() and text.isascii() and len(text) < 40 else float(text)  # noqa: PLR2004
    except ValueError:
        return None
    return math.nan if is_no_number(value) and not math.isinf(value) else value


def _time(text: str, mapped: CsvMapping, name: str) -> int | None:
    number = _number(text) if mapped.time_format in {"epoch", "iso"} else None
    if number is not None and math.isnan(number):
        return None
    try:
        if mapped.time_format == "epoch":
            return int(number) if number is not None and 0 <= number < _MAX / 1000 else _refuse(name, text)
        if mapped.time_format != "iso":
            return int(_in_zone(datetime.strptime(text, mapped.time_format), mapped.zone).timestamp())  # noqa: DTZ007
        if number is None:
            return int(_in_zone(datetime.fromisoformat(text), mapped.zone).timestamp())
        return parse_time_s(text, mapped.zone)
    except (ValueError, OverflowError, ParseError):
        return _refuse(name, text)


def _in_zone(instant: datetime, zone: tzinfo) -> datetime:
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=zone)


def _amount(text: str, mapped: CsvMapping, name: str) -> float | None:
    value = _number(text)
    if value is None:
        read = parse_duration_s(text) if name.endswith("_s") else parse_size_b(text)
        value = math.nan if read is None else float(read)
    elif not math.isinf(value):
        value *= mapped.units.get(name, 1.0)
    if math.isnan(value):
        return None
    return value if 0 <= value <= _MAX else float(_refuse(name, text))


def _memory(text: str, factor: float | None, n_nodes: int | None, cpus: int | None, name: str) -> int | None:
    """Read a memory request, which may have sacct's suffixes and, in a column of MiB, slurmdbd's mark."""
    unit = _LETTERS.get(factor or 1.0, "")
    value = _number(text)
    if value is None or (unit == "M" and text.isdigit()):
        found = total_b(text, n_nodes, cpus, unit)
        if found is None and each_b(text, unit)[0]:
            raise ParseError(f"{text[:40]!r} is per node or processor, but their number is unknown")
    elif math.isnan(value):
        return None
    else:
        found = int(value * (factor or 1.0)) or None if 0 <= value <= _MAX else _refuse(name, text)
    return found if found is None or found <= _MAX else _refuse(name, text)


def _count(text: str, name: str) -> int | None:
    value = _number(text)
    if value is None:
        return _refuse(name, text)
    if math.isnan(value):
        return None
    if not 0 <= value < _MAX_COUNT:
        return _refuse(name, text)
    if value != int(value):  # a share of a GPU or a quota of CPUs: neither 0 nor 1
        raise ParseError(f"{name}: {text[:40]!r} is not a whole number")
    return int(value)


def _exit(code: str, signal: str, *, waited: bool) -> tuple[int | None, int | None]:
    value, number = _count(code, "exit_code"), _count(signal, "exit_code") if signal else None
    if value is None or signal or not (waited or value > _MAX_CODE):
        return value, number
    return value >> 8 & _MAX_CODE, value & 127


def _refuse(name: str, text: str) -> int:
    raise ParseError(f"{name}: cannot read {text[:40]!r}")

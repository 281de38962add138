"""For which release of Slurm a plugin's .so was built, read from the file alone: its symbols need slurmctld to resolve.

A Slurm plugin exports `plugin_version`, a uint32 of major, minor and micro in a byte each, and `plugin_type`, a text;
slurmctld compares the first with its own before it calls anything. Both are looked up in the table of dynamic symbols
(ELF64, little-endian, as x86_64 and aarch64 are).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ParseError

LONGEST: Final = 64 * 1024**2
_IDENT: Final = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_DYNAMIC_SYMBOLS: Final = 11
_LOADED: Final = 1
_LONGEST_TEXT: Final = 256


@dataclass(frozen=True, slots=True)
class PluginFile:
    """What a plugin says of itself: its type, such as job_submit/gpuwaste, and the release, such as 22.05.8."""

    type: str
    release: str


def read_plugin(path: Path) -> PluginFile:
    """Return what the file says. Raises ParseError where it is no plugin, OSError where it cannot be read."""
    if path.stat().st_size > LONGEST:
        raise ParseError(f"{path}: too large for a Slurm plugin")
    data = path.read_bytes()
    try:
        return _plugin(data)
    except (struct.error, ValueError, LookupError, OverflowError) as error:
        raise ParseError(f"{path}: not a Slurm plugin for this machine: {error}") from error


def release_of(number: int) -> str:
    """Return 22.05.8 for 0x160508, as Slurm counts its releases."""
    return f"{number >> 16 & 0xFF}.{number >> 8 & 0xFF:02d}.{number & 0xFF}"


def _plugin(data: bytes) -> PluginFile:
    if not data.startswith(_IDENT):
        raise ValueError("no 64-bit little-endian ELF file")
    header = _HEADER.unpack_from(data)
    wanted = dict(_symbols(data, _places(header[5], header[10], header[11])))
    segments = [_SEGMENT.unpack_from(data, at) for at in _places(header[4], header[8], header[9])]
    (number,) = struct.unpack_from("<I", data, _place(segments, wanted[b"plugin_version"]))
    start = _place(segments, wanted[b"plugin_type"])
    kind = data[start : data.index(b"\0", start, start + _LONGEST_TEXT)]
    return PluginFile(kind.decode("ascii"), release_of(number))


def _places(start: int, size: int, count: int) -> range:
    """Return where the entries of a table lie."""
    if not size:
        raise ValueError("a table without entries")
    return range(start, start + size * count, size)


def _symbols(data: bytes, places: range) -> Iterator[tuple[bytes, int]]:
    """Yield name and address of the dynamic symbols."""
    sections = [_SECTION.unpack_from(data, at) for at in places]
    for section in sections:
        if section[1] != _DYNAMIC_SYMBOLS:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name, _, _, _, address, _ = _SYMBOL.unpack_from(data, at)
            begin = names + name
            yield data[begin : data.index(b"\0", begin)], address


def _place(segments: list[tuple[int, ...]], address: int) -> int:
    """Return where an address lies in the file."""
    for kind, _flags, offset, virtual, _physical, in_file, *_rest in segments:
        if kind == _LOADED and virtual <= address < virtual + in_file:
            return offset + address - virtual
    raise ValueError("a symbol outside the file")

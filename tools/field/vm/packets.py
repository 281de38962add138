"""Reads what qemu has written of a network card: a file of pcap with frames of Ethernet.

Format: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-06.html
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.field.boot import ADDRESS
from tools.field.watch import told as told_of

_HEADER: Final = struct.Struct("<IHHiIII")
_RECORD: Final = struct.Struct("<IIII")
_MAGIC: Final = 0xA1B2C3D4
_ETHERNET: Final = 14
_IP: Final = (0x0800, 0x86DD)
_LIMIT: Final = 1000
_SOURCE: Final = bytes(map(int, ADDRESS.split(".")))


def told(path: Path) -> list[str]:
    """Return a line for each packet of IP that the machine sent. Raises GpuwasteError."""
    found = []
    for frame in _frames(path):
        packet = frame[_ETHERNET:]
        if int.from_bytes(frame[12:14], "big") in _IP and packet[12:16] == _SOURCE and (line := told_of(packet)):
            found.append(line)
        if len(found) == _LIMIT:
            break
    return found


def _frames(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size or _HEADER.unpack(header)[0] != _MAGIC:
                raise GpuwasteError(f"field: {path}: no packets of qemu")
            while len(record := file.read(_RECORD.size)) == _RECORD.size:
                yield file.read(_RECORD.unpack(record)[2])
    except OSError as error:
        raise GpuwasteError(f"field: {path}: {error}") from error

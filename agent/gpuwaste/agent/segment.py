"""Segments: raw samples of some minutes in an append-only file, a record per tick, until their day's file has them.

A record is a mark, the length and CRC-32 of its payload, and the payload: a tick's line, packed. A tick is on the disk
when append() returns (fdatasync). Readers skip an incomplete last record; a damaged record does not affect others.
"""

import json
import os
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from gpuwaste.core import log_event
from gpuwaste.core.files import sync_directory
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample
from gpuwaste.slurm.run_key import RunKey

_DAMAGED: Final = log_event.warning(
    "raw-samples-damaged: {file}: damaged from byte {start} to {end}, those samples are lost",
    "The disk returned other data than was written: see `dmesg` and `smartctl`.",
)
_MARK: Final = b"\xf5gw1"
_HEAD: Final = struct.Struct("<4sII")
_PATTERN: Final = re.compile(r"(\d{8,})-(\d{4}-\d{2}-\d{2})\.samples")
# Values in the order of Sample's fields: a field that a later version adds is at the end and has a default.
_FIELDS: Final = tuple(field.name for field in fields(Sample))
_values = attrgetter(*_FIELDS)
_RUN, _MAP, _CONFIDENCE = map(_FIELDS.index, ("run_key", "map_source", "confidence"))


class Name(NamedTuple):
    """The parts of a segment's name."""

    number: int
    day: str
    path: Path


def segments(folder: Path) -> list[Name]:
    """Return the segments of a folder in the order in which they were written. Raises OSError."""
    found = ((_PATTERN.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted(Name(int(match[1]), match[2], path) for match, path in found if match)


def day_of(t_us: int) -> str:
    """Return the UTC day of an instant."""
    return datetime.fromtimestamp(t_us / 1e6, UTC).strftime("%Y-%m-%d")


def to_line(samples: Sequence[Sample]) -> bytes:
    """Return the samples of a tick as one line of JSON."""
    rows = [list(_values(sample)) for sample in samples]
    for row in rows:
        key = row[_RUN]
        row[_RUN] = key and (key.cluster, key.job_id, key.start)
    return json.dumps(rows, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes) -> list[Sample]:
    """Return the samples of a line. Raises ValueError or TypeError where no version of gpuwaste wrote it."""
    return [_sample(row[: len(_FIELDS)]) for row in json.loads(line)]


def _sample(row: list[Any]) -> Sample:
    row[_RUN] = row[_RUN] and RunKey(*row[_RUN])
    row[_MAP], row[_CONFIDENCE] = MapSource(row[_MAP]), Confidence(row[_CONFIDENCE])
    return Sample(*row)


class Segment:
    """A segment that is being written, for one thread. Every method except close() may raise OSError."""

    def __init__(self, folder: Path, number: int, day: str) -> None:
        self.path = folder / f"{number:08d}-{day}.samples"
        self.day = day
        self.size_b = 0
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        sync_directory(folder)

    def append(self, samples: Sequence[Sample]) -> None:
        """Write the samples of one tick; afterwards they are on the disk, or none of them is in the file."""
        payload = zlib.compress(to_line(samples), 1)
        record = _HEAD.pack(_MARK, len(payload), zlib.crc32(payload)) + payload
        try:
            left = memoryview(record)
            while left:
                left = left[os.write(self._fd, left) :]
            os.fdatasync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self.size_b)
            raise
        self.size_b += len(record)

    def close(self) -> None:
        """Close the file; remove an empty one."""
        os.close(self._fd)
        if not self.size_b:
            self.path.unlink(missing_ok=True)


def read_ticks(path: Path) -> Iterator[list[Sample]]:
    """Yield the ticks of a segment. Raises OSError, and ValueError where its records are not gpuwaste's."""
    for line in lines_of(path.read_bytes(), path.name):
        try:
            yield from_line(line)
        except (TypeError, AttributeError, KeyError, IndexError) as error:
            raise ValueError(str(error)) from error


def lines_of(data: bytes, name: str) -> Iterator[bytes]:
    """Yield the lines of a segment's complete records; log damage between them, but not an incomplete end."""
    at, damaged = 0, None
    while (at := data.find(_MARK, at)) >= 0:
        line = _line_at(data, at)
        if line is None:
            damaged = at if damaged is None else damaged
            at += 1
            continue
        if damaged is not None:
            _DAMAGED.log(file=name, start=damaged, end=at)
            damaged = None
        yield line
        at += _HEAD.size + _HEAD.unpack_from(data, at)[1]
        if at < len(data) and data[at : at + len(_MARK)] != _MARK:
            damaged = at


def _line_at(data: bytes, at: int) -> bytes | None:
    """Return the line of the record at an offset, None where there is no complete one."""
    if len(data) - at < _HEAD.size:
        return None
    _, length, crc = _HEAD.unpack_from(data, at)
    payload = data[at + _HEAD.size : at + _HEAD.size + length]
    if len(payload) < length or zlib.crc32(payload) != crc:
        return None
    try:
        return zlib.decompress(payload)
    except zlib.error:
        return None

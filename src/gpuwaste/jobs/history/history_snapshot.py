"""The snapshot of a history on disk: a line of JSON with sizes and a checksum, rows of keys and users, open runs."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.files import write_whole
from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.history.history_keys import EXACT, KEYS
from gpuwaste.jobs.history.packed_rows import ROW, STATE_VERSION
from gpuwaste.jobs.history.recent_runs import RECENT

Run = tuple[int, int]  # job id and submission
Buffer = bytes | memoryview
_FORMAT: Final = "gpuwaste history 1"
_HEADER_MAX: Final = 4096
_OPEN: Final = np.dtype(
    [
        ("run", "<i8", (2,)),
        ("amounts", "<f8", (3,)),
        ("flags", "u1", (2,)),
        ("rows", "<u4", (len(KEYS),)),
    ]
)
_LAYOUT: Final = hashlib.sha256(
    repr((STATE_VERSION, ROW.descr, RECENT.descr, _OPEN.descr, KEYS, EXACT)).encode()
).hexdigest()


@dataclass(slots=True)
class OpenRun:
    """A run that is pending, running, or ended and not yet judged by the ledger; `rows` are those of its keys."""

    rows: tuple[int, ...]
    cpus: float
    limit_s: float
    gpus: float
    started: bool = False
    ended: bool = False


class Content(NamedTuple):
    """The content of a snapshot."""

    rows: NDArray[np.void]
    recent: NDArray[np.void]
    open: list[tuple[Run, OpenRun]]
    as_of: int
    max_keys: int
    under_use: UnderUse


def encode(
    rows: NDArray[np.void],
    recent: NDArray[np.void],
    runs: Mapping[Run, OpenRun],
    *,
    as_of: int,
    max_keys: int,
    under_use: UnderUse,
) -> list[Buffer]:
    """Return the file's bytes in parts: `rows` and `recent` themselves, which must not change until it is written."""
    held = np.zeros(len(runs), dtype=_OPEN)
    for place, (key, run) in enumerate(runs.items()):
        held[place] = (key, (run.cpus, run.limit_s, run.gpus), (run.started, run.ended), run.rows)
    parts = tuple(np.ascontiguousarray(part).view(np.uint8).data for part in (rows, recent, held))
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    header = {
        "format": _FORMAT, "layout": _LAYOUT, "rows": len(rows), "recent": len(recent), "open": len(held),
        "as_of": as_of, "max_keys": max_keys, "under_use": asdict(under_use), "sha256": digest.hexdigest(),
    }  # fmt: skip
    return [json.dumps(header).encode() + b"\n", *parts]


def write_snapshot(path: Path, parts: Iterable[Buffer]) -> None:
    """Replace the file atomically, synced to disk before the rename. Raises StoreError."""
    try:
        write_whole(path, *parts, mode=0o600)
    except OSError as error:
        raise StoreError(f"history snapshot {path} cannot be written: {error.strerror or error}") from error


def read_snapshot(path: Path) -> Content:
    """Read and check a snapshot. Raises StoreError (cannot be read) or ParseError (not a complete snapshot)."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"history snapshot {path} cannot be read: {error.strerror or error}") from error
    first = data[: _HEADER_MAX + 1].partition(b"\n")[0]
    payload = memoryview(data)[len(first) + 1 :]  # no copy: the rows are most of the memory
    header = _header(first, path)
    if header["layout"] != _LAYOUT:
        raise ParseError(f"history snapshot {path} is of another version of the state: replay the history")
    sizes = (header["rows"] * ROW.itemsize, header["recent"] * RECENT.itemsize, header["open"] * _OPEN.itemsize)
    if len(payload) != sum(sizes):
        raise ParseError(
            f"history snapshot {path} is truncated: {len(payload)} of {sum(sizes)} bytes: replay the history"
        )
    if hashlib.sha256(payload).hexdigest() != header["sha256"]:
        raise ParseError(f"history snapshot {path} is corrupt, its checksum differs: replay the history")
    rows = np.frombuffer(payload, dtype=ROW, count=header["rows"])
    recent = np.frombuffer(payload, dtype=RECENT, offset=sizes[0], count=header["recent"])
    held = np.frombuffer(payload, dtype=_OPEN, offset=sizes[0] + sizes[1])
    under_use = convert(header["under_use"], UnderUse, f"history snapshot {path}")
    runs = [_open_run(item) for item in held.tolist()]
    return Content(rows, recent, runs, header["as_of"], header["max_keys"], under_use)


def _header(line: bytes, path: Path) -> dict[str, Any]:
    try:
        header = json.loads(line) if len(line) <= _HEADER_MAX else None
    except (ValueError, RecursionError):
        header = None
    numbers = ("rows", "recent", "open", "as_of", "max_keys")
    if (
        not isinstance(header, dict)
        or header.get("format") != _FORMAT
        or not all(type(header.get(name)) is int and header[name] >= 0 for name in numbers)
        or not all(isinstance(header.get(name), str) for name in ("layout", "sha256"))
        or not isinstance(header.get("under_use"), dict)
    ):
        raise ParseError(f"{path} is not a history snapshot of this version: replay the history")
    return header


def _open_run(item: tuple[Any, ...]) -> tuple[Run, OpenRun]:
    (job_id, submit), (cpus, limit_s, gpus), (started, ended), rows = item
    return (int(job_id), int(submit)), OpenRun(
        tuple(int(row) for row in rows), float(cpus), float(limit_s), float(gpus), bool(started), bool(ended)
    )

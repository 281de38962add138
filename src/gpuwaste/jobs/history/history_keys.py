"""The keys of history: which earlier jobs a request is compared with, as 64-bit numbers that are equal on all hosts."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.text import short_cache
from gpuwaste.jobs.history.job_names import CACHED, normal_name
from gpuwaste.jobs.history.job_table import Categories, Floats, JobTable
from gpuwaste.slurm.submit.job_request import JobRequest

Hashes = NDArray[np.uint64]
_MULTIPLIER: Final = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, as in splitmix64 (Steele et al., OOPSLA 2014)
_MASK: Final = (1 << 64) - 1
_SHIFT: Final = 32
_UNSAID: Final = 1 << 63  # an amount that was not given; real amounts are smaller
_LARGEST: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Key:
    """One way to group earlier jobs: by the columns `parts`; `text` ends a sentence about such jobs."""

    name: str
    text: str
    parts: tuple[str, ...]


KEYS: Final = (
    Key("user", "of this user", ("user",)),
    Key("account", "of this account", ("account",)),
    Key("shape", "of this user with this size and limit", ("user", "cpus", "nodes", "gpus", "time_limit_s")),
    Key("name", "of this user with this name", ("user", "name")),
    Key("partition", "in this partition and QOS", ("partition", "qos")),
    Key("cluster", "of the whole cluster", ()),
)
# Compared only among one user's last submissions: no history of its own is kept for such jobs.
EXACT: Final = Key(
    "exact",
    "with this name and request",
    ("user", "name", "cpus", "time_limit_s", "mem_b", "partition", "qos"),
)
COLUMNS: Final = {"time_limit_s": "limit_s"}  # a request's field whose column in JobTable has another name


@short_cache(CACHED)
def text_hash(text: str) -> int:
    """Return 64 bits of SHA-256 over the text; lone surrogates, as from undecodable bytes, are allowed."""
    # A hash that OpenSSL has in FIPS mode: Enterprise Linux's Python rejects BLAKE2 there.
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "little")


@short_cache(CACHED)
def name_hash(name: str) -> int:
    """Return the hash of a job's normalised name."""
    return text_hash(normal_name(name))


def keys_of(request: JobRequest) -> list[int]:
    """Return the hash of each of KEYS for one request: the same numbers as `key_columns` gives for its row."""
    return [_mixed(name, *parts(request)) for name, parts in _PARTS]


def exact_key(request: JobRequest) -> int:
    """Return the hash of the key EXACT for one request."""
    return _mixed(EXACT.name, *_EXACT_PARTS(request))


def name_key(user: str, name: str) -> int:
    """Return the hash of the key "name": one user's jobs of one normalised name."""
    return _mixed("name", user, name)


def key_columns(table: JobTable, keys: Sequence[Key] = KEYS) -> list[Hashes]:
    """Return the hash of each key for every row: one array of n per key."""
    parts = {part: _column(table, part) for key in keys for part in key.parts}
    columns = []
    for key in keys:
        value = np.full(len(table), text_hash(key.name), dtype=np.uint64)
        for part in key.parts:
            value = (value ^ parts[part]) * np.uint64(_MULTIPLIER)  # wraps around, as arrays of uint64 do
            value ^= value >> np.uint64(_SHIFT)
        columns.append(value)
    return columns


def _column(table: JobTable, part: str) -> Hashes:
    column: Categories | Floats = getattr(table, COLUMNS.get(part, part))
    if isinstance(column, Categories):
        of = name_hash if part == "name" else text_hash
        hashes = np.fromiter((of(text) for text in column.values), dtype=np.uint64, count=len(column.values))
        return hashes[column.codes]
    known = np.isfinite(column)
    amounts = np.clip(np.where(known, column, 0.0), 0.0, _LARGEST).astype(np.uint64)
    return np.where(known, amounts, np.uint64(_UNSAID))


@short_cache(CACHED)
def _mixed(name: str, *values: str | int | None) -> int:
    """Return the hash of one key; cached, as the same few users, names and sizes recur."""
    mixed = text_hash(name)
    for part, value in zip(_ALL[name].parts, values, strict=True):
        mixed = ((mixed ^ _number(part, value)) * _MULTIPLIER) & _MASK
        mixed ^= mixed >> _SHIFT
    return mixed


def _number(part: str, value: str | int | None) -> int:
    if isinstance(value, str):
        return name_hash(value) if part == "name" else text_hash(value)
    return _UNSAID if value is None else min(max(int(value), 0), _LARGEST)


def _getter(parts: tuple[str, ...]) -> Callable[[JobRequest], tuple[Any, ...]]:
    """Return a reader of a request's fields that always returns a tuple."""
    return attrgetter(*parts) if len(parts) > 1 else lambda request: tuple(getattr(request, p) for p in parts)


BY_NAME: Final = {key.name: key for key in KEYS}
_ALL: Final = BY_NAME | {EXACT.name: EXACT}
_PARTS: Final = tuple((key.name, _getter(key.parts)) for key in KEYS)
_EXACT_PARTS: Final = _getter(EXACT.parts)

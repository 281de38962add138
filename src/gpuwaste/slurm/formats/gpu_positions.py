"""Which GPUs of a node Slurm means by position (IDX): the GPU list of `slurmd -G`, and GRES strings of scontrol.

The `Index=` that it prints is made of the file's digits and unrelated to the position, so it is not read.

A position (Slurm prints `IDX`) counts the node's GPUs in the order of its gres list. It is neither a minor number nor
an NVML index.
"""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.formats.hostlist import expand, split_outside
from gpuwaste.slurm.submit.gpu_items import count_of

_MAX_POSITION: Final = 1023  # MAX_GRES_BITMAP of Slurm
_MAX_SHARES: Final = 24_000  # characters
_ABSENT: Final = frozenset({"", "(null)", "N/A"})
_ENTRY = re.compile(r"([A-Za-z][\w.\-/]*)((?::[^:()]+)*)((?:\([^()]*\))*)")
_SHARES = re.compile(r"(?:-|\d{1,9})/\d{1,9}(?:,(?:-|\d{1,9})/\d{1,9})*", re.ASCII)
_DETAIL = re.compile(r"\((?:([A-Z]+):)?([^()]*)\)")
_ROW = re.compile(r"\bGres Name=(\S+) (.*)")
_FIELD = re.compile(r"(?<!\w)(\w++)=(\S*)")
NVIDIA_MAJOR: Final = 195
"""Major of /dev/nvidiaN."""
DRM_MAJOR: Final = 226
"""Major of /dev/dri/renderDN and /dev/dri/cardN: AMD, Intel, and a second name of NVIDIA GPUs."""
_DRM_NAME = re.compile(r"(?:renderD|card)\d{1,9}")
_CAPABILITY = re.compile(r"nvidia-cap(\d{1,9})")
_DEVICE = re.compile(r"\D*(\d{1,9})")
_MAX_COUNT = 1024
_SHARED = frozenset({"shard", "mps"})


@dataclass(frozen=True, slots=True)
class GresEntry:
    """One entry: `gpu:a100:2(IDX:0-1)`. `positions` is None where no list is printed, () where an empty one is."""

    name: str
    type: str
    count: int | None
    positions: tuple[int, ...] | None = None

    @property
    def number(self) -> int:
        """The count; where none is printed the number of positions, else one, as Slurm reads `gpu:a100` of a node."""
        return (1 if self.positions is None else len(self.positions)) if self.count is None else self.count


@dataclass(frozen=True, slots=True)
class GresOnNode:
    """What one job holds on one node.

    `positions` are those of the GPUs, or else of the GPUs whose shards or MPS the job holds, where Slurm prints them.
    `gpus` is the printed count: larger than `positions` where Slurm names no device. CPUs and memory are None where
    they are not known.
    """

    positions: tuple[int, ...] = ()
    gpus: int = 0
    types: tuple[str, ...] = ()
    shards: int = 0
    cpus: int | None = None
    memory_b: int | None = None


def parse_gres(text: str) -> list[GresEntry]:
    """Return the entries of one GRES list. Raises ParseError."""
    text = text.strip()
    if text in _ABSENT:
        return []
    return [_entry(part.strip(), text) for part in split_outside(text, "(", ")")]


def job_gres_on_node(text: str) -> GresOnNode:
    """Sum up the `GRES=` of one `Nodes=` line: positions of several types are one set. Raises ParseError."""
    entries = parse_gres(text)
    gpus = [entry for entry in entries if entry.name == "gpu"]
    shared = [entry for entry in entries if entry.name in {"shard", "mps"}]
    positions = sorted({position for entry in gpus or shared for position in entry.positions or ()})
    return GresOnNode(
        positions=tuple(positions),
        gpus=sum(entry.number for entry in gpus),
        types=tuple(sorted({entry.type for entry in gpus if entry.type})),
        shards=sum(entry.number for entry in shared if entry.name == "shard"),
    )


def parse_positions(text: str) -> tuple[int, ...]:
    """Read `0-1,3`; an empty text and N/A mean no positions. Raises ParseError."""
    if text.strip() in _ABSENT:
        return ()
    found: set[int] = set()
    for item in text.split(","):
        low, dash, high = item.strip().partition("-")
        first = _position(low, text)
        last = _position(high, text) if dash else first
        if last < first:
            raise ParseError(f"GRES positions {text[:40]!r}: the range {item!r} is reversed")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def _position(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 4 and int(digits) <= _MAX_POSITION):  # noqa: PLR2004
        raise ParseError(f"GRES positions {text[:40]!r}: {digits[:20]!r} is not a number from 0 to {_MAX_POSITION}")
    return int(digits)


def _entry(part: str, whole: str) -> GresEntry:
    match = _ENTRY.fullmatch(part)
    if match is None:
        raise ParseError(f"GRES {whole[:60]!r}: cannot read {part[:40]!r}")
    words = match[2].split(":")[1:]
    count = count_of(words[-1]) if words else None
    if words and count is not None:
        words.pop()
    positions: tuple[int, ...] | None = None
    for label, detail in _DETAIL.findall(match[3]):
        if label == "IDX":
            positions = parse_positions(detail)
        elif not label and len(detail) <= _MAX_SHARES and _SHARES.fullmatch(detail):
            positions = _shared_positions(detail)
    return GresEntry(match[1], ":".join(words), count, positions)


def _shared_positions(detail: str) -> tuple[int, ...]:
    """Read the shares of each GPU, used/all, as 24.11 and later print them: `2/4,0/4` is position 0."""
    used = (item.partition("/")[0] for item in detail.split(",")[: _MAX_POSITION + 1])
    return tuple(position for position, count in enumerate(used) if count.strip("-0"))


class DeviceNode(NamedTuple):
    """A character device's number: the driver by its major, the device by its minor."""

    major: int
    minor: int


NodeOf = Callable[[str], DeviceNode | None]


@dataclass(frozen=True, slots=True)
class DevicePosition:
    """One GPU (or MIG instance) of the node's list.

    `minor` is that of the device file, `major` its driver's; `cap_minors` are those of a MIG instance's capability
    files; `unique_id` is the UUID where Slurm detected it.
    """

    position: int
    files: tuple[str, ...] = ()
    type: str = ""
    name: str = "gpu"
    minor: int | None = None
    cap_minors: tuple[int, ...] = ()
    unique_id: str = ""
    shards: int = 0  # into how many parts jobs may share it; 0 where they may not
    major: int = NVIDIA_MAJOR

    @property
    def file(self) -> str | None:
        """The device file, None where gres.conf names none."""
        return self.files[0] if self.files else None

    @property
    def node(self) -> DeviceNode | None:
        """The device file's number, None where it is not known."""
        return None if self.minor is None else DeviceNode(self.major, self.minor)


def device_node(path: str) -> DeviceNode | None:
    """Return the number of a device file: from the file, else from its name and the digits at its end."""
    try:
        status = os.stat(path)  # noqa: PTH116 st_rdev is read from the same result
    except (OSError, ValueError):
        status = None
    if status is not None and stat.S_ISCHR(status.st_mode):
        return DeviceNode(os.major(status.st_rdev), os.minor(status.st_rdev))
    name = path.rsplit("/", 1)[-1]
    match = _DEVICE.fullmatch(name)
    return DeviceNode(DRM_MAJOR if _DRM_NAME.fullmatch(name) else NVIDIA_MAJOR, int(match[1])) if match else None


def parse_slurmd_g(text: str, node_of: NodeOf = device_node) -> list[DevicePosition]:
    """Return the GPUs in position order; other lines (log noise) and other gres are left out. Raises ParseError."""
    devices: list[DevicePosition] = []
    shards: dict[tuple[str, ...], int] = {}
    for line in text.splitlines():
        match = _ROW.search(line)
        if match and match[1] == "gpu":
            devices.extend(_row(match[2], len(devices), line, node_of))
        elif match and match[1] in _SHARED:
            values = dict(_FIELD.findall(match[2]))
            files, count = expand(values.get("File", "").replace("(null)", "")), values.get("Count", "")
            if files and count.isascii() and count.isdigit() and len(count) < 6:  # noqa: PLR2004 digits
                shards[tuple(files)] = int(count)
    return [replace(device, shards=shards.get(device.files, 0)) for device in devices]


def _row(rest: str, first: int, line: str, node_of: NodeOf) -> list[DevicePosition]:
    values = {key: "" if value == "(null)" else value for key, value in _FIELD.findall(rest)}
    digits = values.get("Count", "")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 4 or int(digits) > _MAX_COUNT:  # noqa: PLR2004
        raise ParseError(f"slurmd -G: no usable Count in {line[:120]!r}")
    count = int(digits)
    files = expand(values.get("File", ""))
    groups: list[tuple[str, ...]]
    if not files:
        groups = [()] * count
    elif count == 1:
        groups = [tuple(files)]  # several files of one GPU: a MIG instance with its capabilities
    elif len(files) == count:
        groups = [(file,) for file in files]
    elif len(files) % count == 0 and count:
        size = len(files) // count
        groups = [tuple(files[at : at + size]) for at in range(0, len(files), size)]
    else:
        raise ParseError(f"slurmd -G: {len(files)} files for Count={count} in {line[:120]!r}")
    return [_device(first + offset, group, values, node_of) for offset, group in enumerate(groups)]


def _device(position: int, files: tuple[str, ...], values: dict[str, str], node_of: NodeOf) -> DevicePosition:
    caps = [(file, _CAPABILITY.fullmatch(file.rsplit("/", 1)[-1])) for file in files]
    plain = [file for file, cap in caps if cap is None]
    node = node_of(plain[0]) if plain else None
    return DevicePosition(
        position=position,
        files=files,
        type=values.get("Type", ""),
        minor=node.minor if node else None,
        cap_minors=tuple(int(cap[1]) for _, cap in caps if cap),
        unique_id=values.get("UniqueId", ""),
        major=node.major if node else NVIDIA_MAJOR,
    )

"""The recording's format: xz-compressed JSON lines, one typed entry each, in order of time, the last one a count.

An entry holds the product's own types as they are; times are UTC microseconds. The last line tells how many entries
stand before it, so that a recording that was cut off is known as such.
"""

import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from gpuwaste.agent.facts.run_facts import LocalRun, MinorFacts, PositionFacts
from gpuwaste.agent.readings import GpuScan, HostUse
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.ledger.gpu_sample import MapSource, UnknownReason
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import DevicePosition
from gpuwaste.slurm.site.cluster_model import Node, Partition
from gpuwaste.testing.simnvml import OracleEvent

FORMAT: Final = 1
_DATA: Final = Path(__file__).with_name("data")
SHIPPED: Final = _DATA / "demo.jsonl.xz"
"""A run of `make demo`."""
SHIPPED_ALL: Final = _DATA / "demo-all.jsonl.xz"
"""A run of `make demo-all`: all jobs."""
_MAX_BYTES: Final = 64 * 1024**2  # of a recording, unpacked


class RecordingError(GpuwasteError):
    """A recording cannot be read or is not whole."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The first entry: how the recorded site was set up. `hub` and `agent` are configuration keys beside these."""

    format: int
    t_us: int
    version: str
    cluster: str
    nodes: tuple[str, ...]
    interval_s: float
    ship_every_s: float
    sacct_every_s: float
    hub: Mapping[str, Any] = field(default_factory=dict)
    agent: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["recording"] = "recording"


@dataclass(frozen=True, slots=True)
class AgentStart:
    """An agent of a node started; an earlier one of that node had been killed."""

    t_us: int
    node: str
    kind: Literal["start"] = "start"


@dataclass(frozen=True, slots=True)
class Scanned:
    """What one GPU collector answered: a scan, or the reason for which there was none."""

    name: str
    scan: GpuScan | None = None
    xids: tuple[tuple[str, int, int], ...] = ()  # the scan's, as (uuid, Xid, count)
    reason: UnknownReason = UnknownReason.NONE


@dataclass(frozen=True, slots=True)
class Fact:
    """What one source said of one run's GPUs."""

    source: MapSource
    job_id: int
    since_us: int
    said: PositionFacts | MinorFacts


@dataclass(frozen=True, slots=True)
class RecordedTick:
    """One tick of an agent: its collectors' answers, and the local facts behind the device map.

    A collector that failed a moment before is not asked, so it has no answer here. The processes of runs stand in
    `host`.
    """

    t_us: int
    mono_us: int
    node: str
    scans: tuple[Scanned, ...] = ()
    host: Mapping[int, HostUse] | None = None
    runs: tuple[LocalRun, ...] = ()
    ended: tuple[LocalRun, ...] = ()
    facts: tuple[Fact, ...] = ()
    kind: Literal["tick"] = "tick"


@dataclass(frozen=True, slots=True)
class Devices:
    """A node's GPUs in the order of Slurm's positions."""

    t_us: int
    node: str
    devices: tuple[DevicePosition, ...]
    kind: Literal["devices"] = "devices"


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What Slurm said of the site and its people."""

    t_us: int
    settings: Mapping[str, str]
    partitions: tuple[Partition, ...]
    nodes: tuple[Node, ...]
    levels: Mapping[str, str]
    coordinators: Mapping[str, frozenset[str]]
    kind: Literal["site"] = "site"


@dataclass(frozen=True, slots=True)
class Accounted:
    """Runs as sacct told them; each one replaces what was told of it before."""

    t_us: int
    records: tuple[JobRecord, ...]
    kind: Literal["sacct"] = "sacct"


@dataclass(frozen=True, slots=True)
class RecordedMap:
    """slurmctld's answer to the hub's question about one job, or about all (`job_id` None)."""

    t_us: int
    job_id: int | None
    jobs: tuple[RunningJob, ...]
    kind: Literal["map"] = "map"


@dataclass(frozen=True, slots=True)
class Said:
    """A line of progress of the recorded run."""

    t_us: int
    text: str
    kind: Literal["said"] = "said"


@dataclass(frozen=True, slots=True)
class RecordedCommand:
    """A command that a user ran, with the document that he got; one without a document was shown as text."""

    t_us: int
    user: str
    command: tuple[str, ...]
    document: Mapping[str, Any]
    kind: Literal["asked"] = "asked"


@dataclass(frozen=True, slots=True)
class Truth:
    """What the load programs did, and what the demo did to the site: the checks are held against it."""

    t_us: int
    jobs: Mapping[str, int]
    outage: tuple[str, float, float] | None
    events: tuple[OracleEvent, ...]
    kind: Literal["truth"] = "truth"


@dataclass(frozen=True, slots=True)
class End:
    """The last line."""

    entries: int
    kind: Literal["end"] = "end"


Entry = (
    Opening | AgentStart | RecordedTick | Devices | SiteFacts | Accounted | RecordedMap | Said | RecordedCommand | Truth
)
_LINE: Final[TypeAdapter[Any]] = TypeAdapter(Annotated[Entry | End, Field(discriminator="kind")])


def encode(entry: Entry | End) -> bytes:
    """Return an entry as one line, without its newline."""
    # The kind is what tells entries apart, and a default: it is put in front again.
    body: bytes = _LINE.dump_json(entry, exclude_defaults=True)
    rest = body[1:] if body == b"{}" else b"," + body[1:]
    return b'{"kind":"' + entry.kind.encode() + b'"' + rest


def decode(line: bytes, where: str) -> Entry | End:
    """Read one line. Raises RecordingError, which `where` begins."""
    try:
        found: Entry | End = _LINE.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "line"
        raise RecordingError(f"{where}: no entry of a recording: {place}: {first['msg']}") from error
    return found


def write_recording(path: Path, entries: Iterable[Entry]) -> int:
    """Write entries, the Opening first, in the order of their times; returns how many."""
    lines = [encode(entry) for entry in sorted(entries, key=lambda entry: (entry.kind != "recording", entry.t_us))]
    lines.append(encode(End(len(lines))))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(b"\n".join(lines) + b"\n", preset=9 | lzma.PRESET_EXTREME))
    return len(lines) - 1


def read_recording(path: Path) -> tuple[Opening, list[Entry]]:
    """Return the opening and all entries after it, in order of time. Raises RecordingError for what is not whole."""
    again = "take a whole one (git checkout it again, or record with --record)"
    lines = _lines(path, again)
    opening = decode(lines[0], f"{path}, line 1") if lines else None
    if not isinstance(opening, Opening):
        raise RecordingError(f"{path}: does not begin as a recording: {again}")
    if opening.format != FORMAT:
        raise RecordingError(f"{path}: its format is {opening.format}, this version reads {FORMAT}: record it anew")
    read = [decode(line, f"{path}, line {number}") for number, line in enumerate(lines[1:], start=2)]
    last = read.pop() if read else None
    if not isinstance(last, End) or last.entries != len(read) + 1:
        raise RecordingError(f"{path}: is cut off after {len(lines)} lines: {again}")
    entries = list(_entries(read, path))
    if any(entry.t_us < before.t_us for before, entry in pairwise(entries)):
        raise RecordingError(f"{path}: its entries are not in order of time: {again}")
    return opening, entries


def _entries(read: Iterable[Entry | End], path: Path) -> Iterator[Entry]:
    for number, entry in enumerate(read, start=2):
        if isinstance(entry, End | Opening):
            raise RecordingError(f"{path}, line {number}: {entry.kind!r} stands in the middle of a recording")
        yield entry


def _lines(path: Path, again: str) -> list[bytes]:
    try:
        with lzma.open(path) as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (lzma.LZMAError, EOFError) as error:
        raise RecordingError(f"{path}: is damaged or cut off ({error}): {again}") from error
    if len(data) > _MAX_BYTES:
        raise RecordingError(f"{path}: unpacks to more than {_MAX_BYTES} bytes: no recording of ours")
    return data.splitlines()
